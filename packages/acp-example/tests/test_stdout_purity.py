"""Whatever prints in the agent's process, or in one that it starts, stdout carries frames alone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOISY = '''
"""A plugin that prints in every way there is, whenever it can."""

import ctypes
import faulthandler
import logging
import os
import subprocess
import sys
import threading
import warnings
from multiprocessing import get_context

from acp_example.tools import ToolResult, ToolSpec
from pydantic import BaseModel

name = "noisy"
inject = ("tools",)
EARLY = sys.stdout


class Config(BaseModel):
    pass


def noise(when):
    print(f"printed {when}")
    print(f"to the first stdout {when}", file=sys.__stdout__, flush=True)
    print(f"to the early stdout {when}", file=EARLY, flush=True)
    os.write(1, f"written {when}\\n".encode())
    warnings.warn(f"careful {when}", stacklevel=1)
    logging.getLogger("noisy").error(f"logged {when}")
    logging.StreamHandler(sys.__stdout__).emit(
        logging.makeLogRecord({"msg": f"handled {when}"})
    )
    libc = ctypes.CDLL(None)
    libc.puts(f"from C {when}".encode())
    libc.fflush(None)
    subprocess.run(["sh", "-c", f"echo child {when}; echo {{}} > /dev/stdout"], check=True)
    subprocess.run([sys.executable, "-c", "print('fds')"], close_fds=False, check=True)
    os.system(f"echo system {when}")
    fork = get_context("fork").Process(target=os.write, args=(1, b"forked\\n"))
    fork.start()
    fork.join()
    thread = threading.Thread(target=print, args=(f"from a thread {when}",))
    thread.start()
    thread.join()
    with open(1, "w", closefd=False) as opened:
        opened.write(f"opened {when}\\n")
    faulthandler.dump_traceback(sys.__stdout__)


class Shout:
    spec = ToolSpec(
        name="shout",
        description="Make noise.",
        schema={"type": "object", "properties": {}, "required": []},
        kind="read",
        mode="parallel",
        path_policy="none",
        timeout_s=None,
        annotations={},
        title=lambda _: "Shout",
    )

    async def run(self, arguments, context):
        noise("in a tool")
        return ToolResult(text="done")


noise("at import")


def apply(context, config):
    noise("when applied")
    undo = context.service("tools").register(Shout())

    def dispose():
        noise("at the end")
        undo()

    return dispose
'''

COMPOSITION = """
[[plugin]]
id = "llm-replay"
use = "llm_replay.plugin"
[[plugin.config.providers]]
id = "deepseek"
models = [{ id = "deepseek-chat" }]
[[plugin]]
id = "noisy"
use = "noisy"
"""


def chunk(step: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401  parts of a chunk
    return {"type": "assistant/chunk", "data": {"turn": 1, "step": step, "chunk": fields}}


def whole(step: int, block: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [
        chunk(step, type="block-start", index=0, blockType=block["type"]),
        chunk(step, type="block-end", index=0, block=block),
        chunk(step, type="finish", reason={"kind": kind}),
    ]


SCRIPT: list[dict[str, Any]] = [
    {"type": "session", "version": 1, "id": "s", "createdAt": 0, "lineage": "1"},
    *whole(1, {"type": "tool-call", "id": "c", "name": "shout", "arguments": ""}, "tool-calls"),
    *whole(2, {"type": "text", "text": "quiet"}, "stop"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a noisy composition and a recorded session."""
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "agent.snapshot.toml").write_text(COMPOSITION)
    lines = "".join(json.dumps(record) + "\n" for record in SCRIPT)
    (tmp_path / "session.jsonl").write_text(lines)
    return tmp_path


def prompted(home: Path, *command: str) -> tuple[list[dict[str, Any]], str]:
    """Prompt an agent once; return its frames, which are all that it put on stdout, and stderr."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(home),
        "DSH_SNAPSHOT": "replay",
        "DSH_SNAPSHOT_FILE": str(home / "session.jsonl"),
        "DSH_SNAPSHOT_SESSIONS_ROOT": str(home / "sessions"),
        **{key: text for key, text in os.environ.items() if key.startswith("COVERAGE")},
    }
    agent = [sys.executable, "-X", "dev", "-m", "acp_example", "--config", "agent.toml"]
    frames: list[dict[str, Any]] = []
    with subprocess.Popen(  # noqa: S603  our own program
        [*command, *agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=home,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None

        def ask(method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
            request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
            process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]  # a pipe
            process.stdin.flush()  # type: ignore[union-attr]  # as above
            while not frames or frames[-1].get("id") != method:
                frames.append(json.loads(process.stdout.readline()))  # type: ignore[union-attr]
            return dict(frames[-1]["result"])

        ask("initialize", protocolVersion=1)
        session = ask("session/new", cwd=str(home), mcpServers=[])["sessionId"]
        ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])
        process.stdin.close()
        frames += [json.loads(line) for line in process.stdout.read().splitlines()]
        noise = process.stderr.read()
    assert process.returncode == 0
    return frames, noise


def test_noise_of_plugins_tools_and_children_never_reaches_the_client(home: Path) -> None:
    frames, noise = prompted(home)

    assert all(frame["jsonrpc"] == "2.0" for frame in frames)
    assert frames[-1]["result"] == {"stopReason": "end_turn"}
    for when in ("at import", "when applied", "in a tool", "at the end"):
        for way in ("printed", "written", "careful", "logged", "from C", "child", "opened"):
            assert f"{way} {when}" in noise


def test_noise_of_an_agent_without_stderr_never_reaches_the_client(home: Path) -> None:
    frames, _ = prompted(home, "sh", "-c", 'exec "$@" 2>&-', "sh")

    assert all(frame["jsonrpc"] == "2.0" for frame in frames)
    assert frames[-1]["result"] == {"stopReason": "end_turn"}
