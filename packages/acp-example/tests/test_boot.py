import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_example import __main__ as command
from acp_example import boot
from acp_example.config import LogTable
from acp_example.exceptions import ConfigError
from acp_example.server import serve
from acp_example.sessions import Sessions

OVERLAY = """
extends = "agent.toml"
[[patch]]
id = "deepseek"
disabled = true
[[insert]]
id = "llm-replay"
use = "llm_replay.plugin"
[[insert.config.providers]]
id = "deepseek"
models = [{ id = "deepseek-chat" }]
"""

LIVE = """
[agent]
permission_mode = "full-access"
[[plugin]]
id = "deepseek"
use = "acp_example.provider"
[[plugin]]
id = "tools"
use = "acp_example.builtin"
config = { enabled = ["bash"] }
"""


def chunk(step: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401  parts of a chunk
    data = {"turn": 1, "step": step, "chunk": fields}
    return {"type": "assistant/chunk", "data": data}


def whole(step: int, block: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [
        chunk(step, type="block-start", index=0, blockType=block["type"]),
        chunk(step, type="block-end", index=0, block=block),
        chunk(step, type="finish", reason={"kind": kind}),
    ]


CALL = {
    "type": "tool-call",
    "id": "c",
    "name": "bash",
    "arguments": '{"command": "echo out; echo err >&2; echo noise > /dev/fd/1"}',
}
SCRIPT: list[dict[str, Any]] = [
    {"type": "session", "version": 1, "id": "s", "createdAt": 0, "lineage": "1"},
    *whole(1, CALL, "tool-calls"),
    *whole(2, {"type": "text", "text": "ran"}, "stop"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a composition, its overlay, and a recorded session."""
    (tmp_path / "agent.toml").write_text(LIVE)
    (tmp_path / "agent.snapshot.toml").write_text(OVERLAY)
    lines = "".join(json.dumps(record) + "\n" for record in SCRIPT)
    (tmp_path / "session.jsonl").write_text(lines)
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    """Return what a snapshot run tells the agent."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "LC_ALL": "C.UTF-8",
        "DSH_SNAPSHOT": "replay",
        "DSH_SNAPSHOT_FILE": str(home / "session.jsonl"),
        "DSH_SNAPSHOT_SESSIONS_ROOT": str(home / "sessions"),
        "DSH_SNAPSHOT_SPILL_ROOT": str(home / "spill"),
        **{key: text for key, text in os.environ.items() if key.startswith("COVERAGE")},
    }


def conversation(home: Path) -> list[dict[str, Any]]:
    """Return the frames of a client that prompts once."""
    params = {"cwd": str(home), "mcpServers": []}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params},
    ]


@contextmanager
def prompted(home: Path, **more: str) -> Iterator[tuple[Any, Any, Any]]:
    """Boot the agent and send a prompt, request 3; yield the process, its stdin and its stdout."""
    with subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-m", "acp_example", "--config", str(home / "agent.toml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home) | more,
        cwd=home,
        text=True,
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.writelines(json.dumps(frame) + "\n" for frame in conversation(home))
        agent.stdin.flush()
        agent.stdout.readline()
        session = json.loads(agent.stdout.readline())["result"]["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        frame = {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": prompt}
        agent.stdin.write(json.dumps(frame) + "\n")
        agent.stdin.flush()
        yield agent, agent.stdin, agent.stdout


def last_event(home: Path) -> dict[str, Any]:
    log = (home / "sessions" / "1" / "session.jsonl").read_text().splitlines()
    event: dict[str, Any] = json.loads(log[-1])
    return event


def test_installed_agent_serves_a_recorded_turn_over_stdio(home: Path) -> None:
    frames: list[dict[str, Any]] = []
    with prompted(home) as (agent, stdin, stdout):
        while not frames or frames[-1].get("id") != 3:
            frames.append(json.loads(stdout.readline()))
        stdin.close()
        rest, noise = stdout.read(), agent.stderr.read()

    assert agent.returncode == 0
    assert (rest, noise) == ("", "")
    assert frames[-1]["result"] == {"stopReason": "end_turn"}
    assert last_event(home)["type"] == "turn/end"


def test_client_that_vanishes_in_the_middle_of_a_turn_ends_the_process_cleanly(
    home: Path,
) -> None:
    override = home / "replay.override.json"
    override.write_text('[{"kind": "hang"}]')
    with prompted(home, DSH_SNAPSHOT_OVERRIDE=str(override)) as (agent, stdin, stdout):
        stdout.readline()
        stdout.close()
        stdin.close()
        noise = agent.stderr.read()

    assert (agent.returncode, noise) == (0, "")
    reason = {"kind": "aborted", "reason": {"kind": "disposed"}}
    assert last_event(home)["data"]["reason"] == reason


def test_installed_agent_leaves_when_its_input_ends_at_once(home: Path) -> None:
    done = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-m", "acp_example", "--config", str(home / "agent.toml")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(home),
        timeout=60,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_broken_composition_is_told_on_stderr_before_any_frame(home: Path) -> None:
    (home / "agent.toml").write_text('[agent]\nprovder = "x"\n[[plugin]]\nid = "a"\n')

    done = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-m", "acp_example", "--config", str(home / "agent.toml")],
        input="",
        capture_output=True,
        text=True,
        check=False,
        env={**environment(home), "DSH_SNAPSHOT": "record"},
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"acp-example: {home}/agent.toml: agent.provder: unknown key 'provder'; "
        "did you mean 'provider'?\n"
        f"{home}/agent.toml: plugin.0.use: Field required\n"
    )


def test_host_is_composed_from_file_and_environment(home: Path) -> None:
    host = boot.host(home / "agent.toml", {"HOME": str(home), "TMPDIR": "/somewhere"})

    assert host.store.root == home / ".local" / "state" / "acp-example" / "sessions"
    assert host.spill.root == home / ".local" / "state" / "acp-example" / "spill"
    assert (host.store.layout, host.store.compression) == ("plain", "zstd")
    assert host.shared_roots == [host.spill.root, Path("/somewhere")]
    assert list(host.composition.llm.providers) == ["deepseek"]


def test_snapshot_run_keeps_raw_logs_where_it_is_told(home: Path) -> None:
    log = LogTable(sessions_root="~/mine", layout="packed")

    ordinary = boot.store(log, {})
    snapshot = boot.store(log, environment(home))

    assert (ordinary.root, ordinary.compression) == (Path("~/mine").expanduser(), "zstd")
    assert (snapshot.root, snapshot.compression) == (home / "sessions", "none")
    assert snapshot.layout == "packed"


def test_replay_needs_its_overlay(home: Path) -> None:
    (home / "agent.snapshot.toml").unlink()

    with pytest.raises(ConfigError, match="there is no such overlay"):
        boot.host(home / "agent.toml", environment(home))


def test_instructions_stand_at_the_end_of_the_system_prompt(home: Path) -> None:
    (home / "agent.toml").write_text(
        f"{LIVE}\n".replace("[agent]", '[agent]\ninstructions = " Be brief. "')
    )

    prompt = boot.host(home / "agent.toml", {"HOME": str(home)}).system_prompt(Path("/ws"), [])

    assert prompt.endswith("\n\nBe brief.\n")
    assert "You work in the directory /ws.\n" in prompt


def test_a_prompt_of_ones_own_replaces_the_built_in_one(home: Path) -> None:
    (home / "agent.toml").write_text(
        f"{LIVE}\n".replace(
            "[agent]", '[agent]\nprompt = " Look at {cwd}, {never} else.\\n"\ninstructions = "Now."'
        )
    )

    prompt = boot.host(home / "agent.toml", {"HOME": str(home)}).system_prompt(Path("/ws"), [])

    assert prompt == "Look at /ws, {never} else.\n\nNow.\n"


def test_command_line_in_this_process_serves_and_returns(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    monkeypatch.setattr("acp_example.stdio.claim_stdout", lambda: 7)
    monkeypatch.setattr(boot, "run", lambda host, **ends: served.append((host, ends)))
    monkeypatch.setattr(os, "environ", {"HOME": str(home), "PATH": os.environ["PATH"]})

    assert command.main(["--config", str(home / "agent.toml")]) == 0
    assert served[0][1] == {"source": 0, "target": 7}
    assert gc.isenabled()


def test_end_of_input_undoes_the_plugins(home: Path) -> None:
    host = boot.host(home / "agent.toml", {"HOME": str(home)})

    async def work() -> None:
        source, feed = os.pipe()
        drain, target = os.pipe()
        os.close(feed)
        await serve(Sessions(host), source=source, target=target)
        for end in (source, drain, target):
            os.close(end)

    asyncio.run(work())

    assert list(host.composition.llm.providers) == []
