"""An agent that is killed at any moment leaves a log that loads again, repaired."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Json: TypeAlias = Any

KILLER = '''
"""A plugin that has the process killed in the middle of a write."""

import os
from pathlib import Path

from acp_example import spill
from acp_example.log_file import RawSink
from pydantic import BaseModel

name = "killer"
inject = ()


class Config(BaseModel):
    row: str = ""
    spill: bool = False
    signal: int


def apply(context, config):
    write, create = RawSink.write, Path.open

    def die():
        os.kill(os.getpid(), config.signal)

    def half_a_row(sink, data):
        if config.row and f'"type":"{config.row}"'.encode() in data:
            write(sink, data[: len(data) // 2])
            die()
        write(sink, data)

    def half_a_file(path, *mode, **more):
        if config.spill and mode == ("xb",):
            with create(path, "xb") as file:
                file.write(b"half of it")
            die()
        return create(path, *mode, **more)

    RawSink.write = half_a_row
    spill.Path.open = half_a_file
'''

COMPOSITION = """
[agent]
permission_mode = "full-access"
[[plugin]]
id = "llm-replay"
use = "llm_replay.plugin"
[[plugin.config.providers]]
id = "deepseek"
models = [{{ id = "deepseek-chat", contextWindow = 1000 }}]
[[plugin]]
id = "tools"
use = "acp_example.builtin"
config = {{ enabled = ["bash"] }}
{killer}
"""


def chunk(step: int, **fields: Json) -> Json:
    return {"type": "assistant/chunk", "data": {"turn": 1, "step": step, "chunk": fields}}


def whole(step: int, block: Json, kind: str, **usage: int) -> list[Json]:
    return [
        chunk(step, type="block-start", index=0, blockType=block["type"]),
        chunk(step, type="block-end", index=0, block=block),
        *([chunk(step, type="usage", usage=usage)] if usage else []),
        chunk(step, type="finish", reason={"kind": kind}),
    ]


def bash(step: int, command: str, **usage: int) -> list[Json]:
    given = json.dumps({"command": command})
    block = {"type": "tool-call", "id": f"c{step}", "name": "bash", "arguments": given}
    return whole(step, block, "tool-calls", **usage)


SCRIPT: list[Json] = [
    {"type": "session", "version": 1, "id": "s", "createdAt": 0, "lineage": "1"},
    *bash(1, "seq 10000"),
    *bash(2, "echo two", inputTokens=900, outputTokens=1),
    {"type": "llm/call", "data": {"turn": 1, "step": 2, "call": 3, "purpose": "compaction"}},
    {
        "type": "compaction/summary",
        "data": {
            "turn": 1,
            "summary": "all",
            "llmStreamCall": True,
            "rawOutput": [{"type": "text", "text": "all"}],
        },
    },
    *whole(3, {"type": "text", "text": "done"}, "stop"),
]


class Agent:
    """An agent process, and a client that asks it one thing after the other."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.frames: list[Json] = []

    def send(self, method: str, **params: Json) -> None:
        frame = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(frame) + "\n")
        self.process.stdin.flush()

    def until(self, text: str) -> Json:
        """Read frames until one holds a text, and return that."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.frames.append(json.loads(line))
            if text in line:
                return self.frames[-1]
        raise AssertionError(f"the agent ended before {text!r}: {self.frames}")

    def ask(self, method: str, **params: Json) -> Json:
        self.send(method, **params)
        return self.until(f'"id":"{method}"')["result"]

    def ended(self) -> int:
        """Wait for the end of the process and return its status."""
        assert self.process.stdout is not None
        self.process.stdout.read()
        return self.process.wait()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "killer.py").write_text(KILLER)
    write_script(tmp_path, SCRIPT)
    return tmp_path


def write_script(home: Path, records: list[Json]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    (home / "session.jsonl").write_text(text)


@contextmanager
def agent(home: Path, killer: str = "") -> Iterator[Agent]:
    """Start an agent; with `killer`, the configuration of its killer."""
    if killer:
        killer = f'[[plugin]]\nid = "killer"\nuse = "killer"\nconfig = {{ {killer} }}'
    (home / "agent.snapshot.toml").write_text(COMPOSITION.format(killer=killer))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(home),
        "DSH_SNAPSHOT": "replay",
        "DSH_SNAPSHOT_FILE": str(home / "session.jsonl"),
        "DSH_SNAPSHOT_SESSIONS_ROOT": str(home / "sessions"),
        "DSH_SNAPSHOT_SPILL_ROOT": str(home / "spill"),
        **{key: text for key, text in os.environ.items() if key.startswith("COVERAGE")},
    }
    with subprocess.Popen(
        [sys.executable, "-m", "acp_example", "--config", "agent.toml"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=home,
        text=True,
    ) as process:
        started = Agent(process)
        started.ask("initialize", protocolVersion=1)
        yield started
        assert process.stdin is not None
        process.stdin.close()
        started.ended()


def prompt(started: Agent, home: Path) -> str:
    session = str(started.ask("session/new", cwd=str(home), mcpServers=[])["sessionId"])
    text = [{"type": "text", "text": "go"}]
    started.send("session/prompt", sessionId=session, prompt=text)
    return session


def log(home: Path) -> list[Json]:
    """Return the events of the log on disk, all of which are whole."""
    lines = (home / "sessions/1/session.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def check_loaded(home: Path, session: str) -> list[Json]:
    """Load the session in a new process, and check that its log is whole and repaired once."""
    place = {"sessionId": session, "cwd": str(home), "mcpServers": []}
    before = (home / "sessions/1/session.jsonl").read_bytes()
    with agent(home) as second:
        assert [one["sessionId"] for one in second.ask("session/list")["sessions"]] == [session]
        second.ask("session/load", **place)
        repaired = (home / "sessions/1/session.jsonl").read_bytes()
        second.ask("session/load", **place)
    assert repaired.startswith(before[: before.rfind(b"\n") + 1])
    assert (home / "sessions/1/session.jsonl").read_bytes() == repaired
    events = log(home)
    assert [event["seq"] for event in events] == list(range(len(events)))
    messages = [event["data"] for event in events if event["type"] == "assistant/message"]
    blocks = [block for data in messages for block in data["message"]["content"]]
    calls = [block["id"] for block in blocks if block["type"] == "tool-call"]
    results = [event for event in events if event["type"] == "tool/result"]
    assert [one["data"]["message"]["source"]["callId"] for one in results] == calls
    return events


@pytest.mark.parametrize(
    "row", ["turn/start", "assistant/chunk", "tool/call", "tool/result", "compaction/summary"]
)
def test_agent_killed_in_the_middle_of_a_row_leaves_a_log_that_loads(home: Path, row: str) -> None:
    with agent(home, f'row = "{row}", signal = {int(signal.SIGKILL)}') as first:
        session = prompt(first, home)
        assert first.ended() == -signal.SIGKILL

    events = check_loaded(home, session)
    if row == "turn/start":
        assert events == []
    else:
        assert events[-1]["type"] == "turn/end"
        assert events[-1]["data"]["reason"] == {"kind": "interrupted"}


def test_agent_killed_in_the_middle_of_spilling_leaves_a_log_that_loads(home: Path) -> None:
    with agent(home, f"spill = true, signal = {int(signal.SIGKILL)}") as first:
        session = prompt(first, home)
        assert first.ended() == -signal.SIGKILL

    events = check_loaded(home, session)
    (result,) = [event for event in events if event["type"] == "tool/result"]
    assert result["data"]["error"]["code"] == "SESSION_RESUME_INTERRUPTED"
    assert (home / "spill/1/1.1.1-bash-stdout.txt").read_bytes() == b"half of it"


@pytest.fixture
def heard() -> Iterator[None]:
    """Let children hear SIGHUP, also where the tests themselves were started by `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_agent_that_is_told_to_end_stops_what_it_runs_first(
    home: Path, how: signal.Signals
) -> None:
    leash = home / "leash"
    os.mkfifo(leash)
    command = f"exec 3>{leash}; echo up >&3; sleep 600 & sleep 600"
    write_script(home, [SCRIPT[0], *bash(1, command)])

    with agent(home) as first:
        session = prompt(first, home)
        with leash.open() as held:
            assert held.readline() == "up\n"
            first.process.send_signal(how)
            assert first.ended() == 0
            assert held.read() == ""  # The end says that nobody of them is left.

    events = check_loaded(home, session)
    assert [event["data"]["reason"]["kind"] for event in events[-1:]] == ["aborted"]
    (result,) = [event for event in events if event["type"] == "tool/result"]
    assert result["data"]["error"]["code"] == "ABORTED"
