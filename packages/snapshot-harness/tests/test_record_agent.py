"""Recording the example agent, as a process, from a model on the loopback address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_endpoint import (
    Delta,
    RefusedError,
    Reply,
    Request,
    asked,
    calls,
    chat_endpoint,
    letters,
    results,
    words,
)
from kit import START, add_scenario, make_suite, replay, text_of

from snapshot_harness.record import record_scenario
from snapshot_harness.report import Report
from snapshot_harness.suite import Scenario, Suite

AGENT = """
[agent]
provider = "loop"
model = "loop-1"
permission_mode = "full-access"

[[plugin]]
id = "loop"
use = "acp_example.provider"
[plugin.config]
id = "loop"
name = "Loop"
base_url_env = "LOOP_URL"
models = [{ id = "loop-1", context_window = 128000 }]

[[plugin]]
id = "executor"
use = "acp_example.executor"

[[plugin]]
id = "tools"
use = "acp_example.builtin"
"""

OVERLAY = """
extends = "agent.toml"

[[patch]]
id = "loop"
disabled = true

[[insert]]
id = "llm-replay"
use = "llm_replay.plugin"
[[insert.config.providers]]
id = "loop"
name = "Loop"
models = [{ id = "loop-1", contextWindow = 128000 }]
"""

SUITE = """
config = "agent.toml"
keys = ["LOOP_URL"]
[record]
base_url_env = "LOOP_URL"
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.delenv("LOOP_URL", raising=False)
    directory = tmp_path / "scenarios"
    directory.mkdir()
    (directory / "agent.toml").write_text(AGENT)
    (directory / "agent.snapshot.toml").write_text(OVERLAY)
    command = ["{python}", "-m", "acp_example", "--config", "{config}"]
    return make_suite(directory, SUITE, command=command)


def recorded(suite: Suite, prompt: str) -> Scenario:
    """A scenario that is nothing but scenario.toml and input.json."""
    steps: list[dict[str, Any]] = [*START, {"op": "prompt", "text": prompt}]
    scenario = add_scenario(suite, steps=steps, origin="recorded")
    assert len(list(scenario.directory.iterdir())) <= 2
    return scenario


def record(suite: Suite, scenario: Scenario, reply: Reply) -> Report:
    with chat_endpoint(reply) as url:
        (suite.directory / ".env").write_text(f"LOOP_URL={url}\n")
        report = record_scenario(suite, Scenario(scenario.directory)).report
    (suite.directory / ".env").unlink()
    assert report.outcome == "passed", text_of(report)
    return report


def files(scenario: Scenario) -> Mapping[str, str]:
    return {path.name: path.read_text() for path in scenario.directory.iterdir()}


def one_tool(name: str, arguments: dict[str, Any], then: str) -> Reply:
    def reply(request: Request) -> list[Delta]:
        return letters(then, 3) if results(request) else calls((name, arguments))

    return reply


def test_a_scenario_is_recorded_from_its_two_files_and_replays_at_once(suite: Suite) -> None:
    scenario = recorded(suite, "Say hello with bash.")

    record(suite, scenario, one_tool("bash", {"command": "echo hello"}, "It said hello."))

    assert replay(suite, scenario).outcome == "passed"
    first = files(scenario)
    assert set(first) == {"input.json", "scenario.toml", "session.jsonl", "stdout.expected.jsonl"}
    assert 'endpoint = "$LOOP_URL"' in first["scenario.toml"]

    record(suite, scenario, one_tool("bash", {"command": "echo other"}, "It said other."))

    second = files(scenario)
    assert set(second) == set(first)
    assert "hello" not in second["stdout.expected.jsonl"]
    assert replay(suite, scenario).outcome == "passed"


def test_paths_and_braces_cut_anywhere_by_the_stream_replay_at_once(suite: Suite) -> None:
    scenario = recorded(suite, "Fill the screen.")

    def reply(request: Request) -> list[Delta]:
        if not results(request):
            return calls(("bash", {"command": "pwd; seq 1 20000"}))
        text = results(request)[-1]
        paths = sorted(set(re.findall(r"/[\w./-]*acpsnap-[\w./-]*[\w]", text)))
        assert len(paths) > 1, text
        return letters(f"In {' and '.join(paths)}: {{{{literal}}}} {{{{cwd}}}} {{{{{{lit}}", 3)

    record(suite, scenario, reply)

    log = files(scenario)["session.jsonl"]
    assert "{{cwd}}" in log
    assert "{{spill}}/" in log
    assert "{{lit}}literal" in log.replace('"}}}\n', "") or "{{lit}}" in log
    assert "acpsnap-" not in "".join(files(scenario).values())
    assert replay(suite, scenario).outcome == "passed"


@pytest.mark.parametrize("first", [0, 1])
def test_two_tools_that_finish_in_either_order_replay_at_once(suite: Suite, first: int) -> None:
    scenario = recorded(suite, "Do two things.")
    wait = "while [ ! -e done ]; do sleep 0.01; done; echo waited"
    commands = [wait, wait]
    commands[first] = "echo went; touch done"

    def reply(request: Request) -> list[Delta]:
        if results(request):
            return words("Done", ".")
        return calls(*(("bash", {"command": command}) for command in commands))

    record(suite, scenario, reply)

    assert replay(suite, scenario).outcome == "passed"


def test_three_parallel_subagents_replay_at_once(suite: Suite) -> None:
    scenario = recorded(suite, "Ask three.")

    def reply(request: Request) -> list[Delta]:
        prompt = asked(request)
        if prompt.startswith("Child"):
            return letters(f"I am {prompt}", 2)
        if results(request):
            return words("They all answered.")
        tasks = [{"description": f"Task {n}", "prompt": f"Child {n}"} for n in (1, 2, 3)]
        return calls(*(("task", task) for task in tasks))

    record(suite, scenario, reply)

    logs = {name for name in files(scenario) if name.startswith("session")}
    assert logs == {f"session{n}.jsonl" for n in ("", ".1", ".2", ".3")}
    assert "Child 2" in files(scenario)["session.2.jsonl"]
    assert replay(suite, scenario).outcome == "passed"


def test_a_call_that_the_endpoint_refuses_is_kept_as_the_fact_it_is(suite: Suite) -> None:
    steps: list[dict[str, Any]] = [*START, {"op": "promptExpectError", "text": "Hello."}]
    scenario = add_scenario(suite, steps=steps, origin="recorded")

    def reply(_: Request) -> list[Delta]:
        raise RefusedError

    record(suite, scenario, reply)

    log = files(scenario)["session.jsonl"]
    assert '"finish","reason":{"kind":"error","failure":{"message":"Loop answered 400: ' in log
    assert replay(suite, scenario).outcome == "passed"
