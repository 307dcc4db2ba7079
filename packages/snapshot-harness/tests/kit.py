"""Suites of the fake agent, made for one test each."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from snapshot_harness.modes import Mode
from snapshot_harness.report import Report, failure_text
from snapshot_harness.run import run_scenario
from snapshot_harness.suite import Scenario, Suite, read_suite

FAKE_AGENT = Path(__file__).with_name("fake_agent.py")

Chunks = list[dict[str, Any]]

START: list[dict[str, Any]] = [{"op": "initialize"}, {"op": "newSession"}]
HELLO: list[dict[str, Any]] = [*START, {"op": "prompt", "text": "Hi"}]


def say(*parts: str) -> Chunks:
    """A call that says some text, a delta each."""
    text = "".join(parts)
    return [
        {"type": "block-start", "index": 0, "blockType": "text"},
        *({"type": "text-delta", "index": 0, "text": part} for part in parts),
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": text}},
        {"type": "finish", "reason": {"kind": "stop"}},
    ]


def use(*commands: str) -> Chunks:
    """A call that asks for the fake agent's one tool, once per command."""
    chunks: Chunks = []
    for index, command in enumerate(commands):
        arguments = json.dumps({"command": command})
        block = {"type": "tool-call", "id": f"c{index}", "name": "run", "arguments": arguments}
        chunks.append({"type": "block-start", "index": index, "blockType": "tool-call"})
        chunks.append({"type": "block-end", "index": index, "block": block})
    return [*chunks, {"type": "finish", "reason": {"kind": "tool-calls"}}]


def session_log(turns: Sequence[Sequence[Chunks]], lineage: str | None = "1") -> str:
    """A hand-written log: the model rows of each call, and what opens it."""
    header: dict[str, Any] = {"type": "session", "version": 1, "id": "{{session:1}}"}
    header |= {"createdAt": 0} | ({} if lineage is None else {"lineage": lineage}) | {"tokens": 1}
    lines, number = [header], 0
    for turn, calls in enumerate(turns, 1):
        for step, chunks in enumerate(calls, 1):
            number += 1
            at = {"turn": turn, "step": step}
            opened = {**at, "call": number, "purpose": "turn"}
            lines.append({"type": "llm/call", "data": opened, "ignorable": True})
            lines += [{"type": "assistant/chunk", "data": {**at, "chunk": one}} for one in chunks]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def make_suite(directory: Path, toml: str = "", *, command: Sequence[str] | None = None) -> Suite:
    """Write suite.toml for the fake agent, or for another command."""
    directory.mkdir(parents=True, exist_ok=True)
    argv = ["{python}", str(FAKE_AGENT)] if command is None else list(command)
    (directory / "suite.toml").write_text(f"command = {json.dumps(argv)}\n{toml}\n")
    return read_suite(directory / "suite.toml")


def add_scenario(  # noqa: PLR0913  all that a scenario is made of
    suite: Suite,
    name: str = "one",
    *,
    steps: Sequence[Mapping[str, Any]] = HELLO,
    answers: Sequence[Mapping[str, Any]] = (),
    turns: Sequence[Sequence[Chunks]] = (),
    toml: str = "",
    fake: str = "",
    origin: str = "authored",
) -> Scenario:
    """Write a scenario; `fake` are the words that the fake agent obeys."""
    directory = suite.directory / name
    directory.mkdir(parents=True, exist_ok=True)
    set_up(directory, toml=toml, fake=fake, origin=origin)
    script: dict[str, Any] = {"steps": list(steps)}
    if answers:
        script["permissionAnswers"] = list(answers)
    (directory / "input.json").write_text(json.dumps(script))
    if origin == "authored":
        (directory / "session.jsonl").write_text(session_log(turns))
    return Scenario(directory)


def set_up(directory: Path, *, toml: str = "", fake: str = "", origin: str = "authored") -> None:
    """Write scenario.toml; `fake` are the words that the fake agent obeys."""
    env = f"[env]\nFAKE = {json.dumps(fake)}\n" if fake else ""
    text = f'why = "A test."\norigin = "{origin}"\n{toml}\n{env}'
    (directory / "scenario.toml").write_text(text)


def replay(suite: Suite, scenario: Scenario) -> Report:
    """Replay a scenario, read afresh."""
    return run_scenario(suite, Scenario(scenario.directory), Mode.REPLAY).report


def refresh(suite: Suite, scenario: Scenario) -> Report:
    """Refresh a scenario, read afresh."""
    return run_scenario(suite, Scenario(scenario.directory), Mode.REFRESH).report


def refreshed(suite: Suite, scenario: Scenario) -> Scenario:
    """Refresh a scenario, which must work."""
    report = refresh(suite, scenario)
    assert report.outcome == "passed", failure_text(report)
    return Scenario(scenario.directory)


def text_of(report: Report) -> str:
    """What a person reads of a failure."""
    return failure_text(report)


STOPS = ["/bin/sh", "-c", "echo; kill -s STOP $$"]


def sleeper(**rest: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  keywords of Popen
    """A process that stays until it is killed; it has spoken, so the system knows its arguments."""
    process = subprocess.Popen(STOPS, stdout=subprocess.PIPE, start_new_session=True, **rest)  # noqa: S603  constants
    assert process.stdout is not None
    with process.stdout as stdout:
        assert stdout.readline() == b"\n"
    return process


def runs(pid: int) -> bool:
    """Tell whether a process runs; a zombie only waits to be forgotten."""
    listing = subprocess.run(  # noqa: S603  a number
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False
    )
    return listing.stdout.strip()[:1] not in {b"", b"Z"}


def processes_with(mark: str) -> list[int]:
    """The processes of this machine that carry `mark` in their environment or arguments."""
    found = []
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else []:
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            texts = [(entry / file).read_bytes() for file in ("environ", "cmdline")]
            if any(mark.encode() in text for text in texts):
                found.append(int(entry.name))
    return found


def open_files() -> int:
    """How many files this process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def run_directories(temp: Path) -> list[str]:
    """What runs have left in a temporary directory."""
    return sorted(entry.name for entry in temp.iterdir() if "acpsnap" in entry.name)
