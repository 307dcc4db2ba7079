"""A suite on disk that no guard complains about, to be spoilt by tests."""

import json
from pathlib import Path
from typing import Any

from judging import RULES, answer, answered, event, log, run, said

from snapshot_harness.fixtures import SESSION, SYSTEM, TOOLS, TRANSCRIPT, log_bytes
from snapshot_harness.fixtures import transcript_bytes as frames_bytes
from snapshot_harness.guards import run_guards
from snapshot_harness.headers import collect, system_bytes, tools_bytes
from snapshot_harness.json_value import Json
from snapshot_harness.suite import read_suite

HEADER = event(
    "request/header", {"header": {"system": "You are here.", "tools": [{"name": "bash"}]}}
)
EVENTS = [event("turn/start", {"turn": 1}), HEADER, *answer("one ", "two")]
FRAMES = [answered(0, protocolVersion=1), said("one two"), answered(2, stopReason="end_turn")]
STEPS = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "hi"}]


def write_suite(directory: Path, **more: Json) -> Path:
    """Write suite.toml and the scenario `one`, which pins the only header class."""
    text = 'command = ["{python}", "agent.py"]\n'
    text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    (directory / "suite.toml").write_text(text)
    write_scenario(directory / "one", pins_header=True)
    return directory


def write_scenario(
    directory: Path,
    *,
    events: list[dict[str, Any]] | None = None,
    steps: list[Json] | None = None,
    pins_header: bool = False,
    **more: Json,
) -> Path:
    """Write a scenario in canonical form."""
    directory.mkdir(exist_ok=True)
    done = run([log(EVENTS if events is None else events, lineage="1")], FRAMES, rules=RULES)
    facts = {"why": "It says two words.", "origin": "authored", "pins_header": pins_header, **more}
    (directory / "scenario.toml").write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in facts.items())
    )
    (directory / "input.json").write_text(json.dumps({"steps": STEPS if steps is None else steps}))
    (directory / SESSION).write_bytes(log_bytes(done.logs[0], layout="plain"))
    (directory / TRANSCRIPT).write_bytes(frames_bytes(done.transcript))
    if pins_header:
        headers = collect(done.headers)
        (directory / SYSTEM).write_bytes(system_bytes(headers))
        (directory / TOOLS).write_bytes(tools_bytes(headers))
    return directory


def told(directory: Path) -> list[str]:
    """Return what the guards say of a suite, paths relative to it."""
    problems = run_guards(read_suite(directory / "suite.toml"))
    root = f"{directory.resolve()}/"
    return [str(problem).replace(root, "") for problem in problems]
