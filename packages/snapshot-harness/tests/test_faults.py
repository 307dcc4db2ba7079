"""What a run must survive: each fault ends within its deadline, in a clear error, cleanly."""

import json
import sys
import time
from pathlib import Path

import pytest
from kit import (
    HELLO,
    add_scenario,
    make_suite,
    refresh,
    refreshed,
    replay,
    say,
    session_log,
    set_up,
    text_of,
    use,
)

from snapshot_harness.suite import Suite

QUICK = "[deadlines]\nstep_s = 1.5\nshutdown_s = 0.3\n"
"""For agents that never do what is waited for; all others have the time they need."""


pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "scenarios")


FAULTS = {
    "exits early": ("exit", "the agent ended at step 2 (prompt), before the script did"),
    "hangs": ("hang", "step 2 (prompt): waited for the end of the turn; the last of 2 frames"),
    "prints noise": ("noise", "line 3 of the agent's stdout is not JSON: 'noise'"),
    "prints noise at its start": ("early-noise", "line 1 of the agent's stdout is not JSON"),
    "prints a bare number": ("number", "line 3 of the agent's stdout is JSON, but no object: '17'"),
    "is cut in a line": ("half-line", "before the script did"),
    "never reads": ("no-stdin", "step 0 (initialize): waited for the answer to initialize"),
    "ignores the end of its stdin": (
        "ignore-eof",
        "after the end of its stdin it did not exit, and was sent SIGTERM",
    ),
    "ignores SIGTERM too": ("ignore-eof ignore-term", "not on SIGTERM either, and was killed"),
    "leaves a grandchild": ("grandchild", "left processes behind, which were killed: "),
    "closes its stdout": ("close-stdout", "closed a pipe at step 2 (prompt), and went on running"),
    "ends with a status": ("bad-exit", "the agent ended with status 4"),
    "leaves a gap in its log": ("gap", "session.jsonl:2: seq is 1, expected 0"),
    "cuts its log": ("cut-log", "the last line of the agent's log was cut"),
    "writes no verdict that can be read": ("bad-verdict", "the agent's verdict can't be read"),
    "leaves a pipe as its verdict": ("verdict-pipe", "x.jsonl is no regular file"),
    "removes the run's directory": ("removes-all", "no session log was found below DSH_SNAPSHOT_"),
    "never answers a cancel": ("hang", "waited for the end of the turn"),
}


if sys.platform == "linux":
    message = "left processes behind, which were killed: "
    FAULTS["lets a process escape"] = ("escaped", message)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_agent_ends_in_a_clear_error(suite: Suite, fault: str) -> None:
    words, message = FAULTS[fault]
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hello")]]))
    set_up(scenario.directory, fake=words)
    if {"hang", "no-stdin", "ignore-eof"} & set(words.split()):
        suite = make_suite(suite.directory, QUICK)
    names = ("session.jsonl", "stdout.expected.jsonl")
    committed = [(scenario.directory / name).read_bytes() for name in names]

    started = time.monotonic()
    report = replay(suite, scenario)

    assert report.outcome == "failed"
    assert message in text_of(report)
    assert all("\n  hint: " in problem for problem in report.problems)
    assert time.monotonic() - started < 15
    assert [(scenario.directory / name).read_bytes() for name in names] == committed


def test_the_stderr_tail_is_shown(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hello")]], fake="exit")

    report = refresh(suite, scenario)

    assert "the last the agent wrote to stderr:\n    I am gone" in text_of(report)


def test_a_flood_of_stderr_without_a_newline_blocks_nothing(suite: Suite) -> None:
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hi")]], fake="stderr-flood"))

    assert replay(suite, scenario).outcome == "passed"


def test_a_frame_of_ten_megabytes_is_taken_in(suite: Suite) -> None:
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hi")]], fake="big-frame"))

    assert replay(suite, scenario).outcome == "passed"


def test_a_frame_after_the_end_of_stdin_belongs_to_the_transcript(suite: Suite) -> None:
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hi")]], fake="late-frame"))

    assert "fake/late" in (scenario.directory / "stdout.expected.jsonl").read_text()
    assert replay(suite, scenario).outcome == "passed"


def test_an_update_after_the_answer_to_a_cancel_is_part_of_the_transcript(suite: Suite) -> None:
    chunks = say("So far", " so good")[:-2]
    entry = {"kind": "hang", "chunks": chunks}
    steps = [*HELLO[:2], {"op": "promptAndCancel", "text": "Hi"}]
    scenario = add_scenario(
        suite, steps=steps, turns=[[say("x")]], toml="overridden = true", fake="late-update"
    )
    override = scenario.directory / "replay.override.json"
    override.write_text(json.dumps({"patches": [{"at": 0, "entry": entry}]}))

    done = refreshed(suite, scenario)

    lines = (done.directory / "stdout.expected.jsonl").read_text().splitlines()
    assert "cancelled" in lines[-2]
    assert "too late" in lines[-1]
    assert replay(suite, done).outcome == "passed"


def test_an_agent_without_lineage_calls_and_verdict_passes_by_order(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios", 'verdict = "optional"')
    steps = [*HELLO, {"op": "newSession"}, HELLO[-1]]
    scenario = add_scenario(
        suite, steps=steps, turns=[[say("Hi")]], fake="no-lineage no-llm-call no-verdict"
    )
    second = scenario.directory / "session.1.jsonl"
    second.write_text(session_log([[say("Ho")]], lineage=None))

    done = refreshed(suite, scenario)

    assert replay(suite, done).outcome == "passed"
    assert "llm/call" not in second.read_text()
    assert "Ho" in second.read_text()


def test_an_agent_that_swallows_an_exhausted_script_still_fails(suite: Suite) -> None:
    turns = [[use("echo 1")]]
    scenario = add_scenario(suite, turns=turns, fake="swallow")

    report = refresh(suite, scenario)

    assert report.outcome == "failed"
    assert report.problems[0].startswith("replay fault 'exhausted': ")


def test_a_left_over_call_fails(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hi"), say("More")]])

    report = refresh(suite, scenario)

    assert "one/session.jsonl:7: 1 model call of 2 never asked for" in report.problems[0]


def test_replay_that_was_never_installed_fails(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hi")]], fake="no-verdict")

    report = refresh(suite, scenario)

    (problem,) = report.problems
    assert problem.startswith("replay was never installed, and the fixture has 1 model call\n")


def test_an_agent_that_logs_other_words_than_it_was_served_is_refused(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hello")]], fake="alter")

    report = refresh(suite, scenario)

    assert report.outcome == "failed"
    assert "the agent did not log what it was served: model call 1 of session 1" in text_of(report)
    assert not (scenario.directory / "stdout.expected.jsonl").exists()


def test_an_agent_that_closes_its_stdin_and_goes_on_is_told(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "read line; exec <&-; sleep 60"]
    suite = make_suite(tmp_path / "scenarios", command=command)
    steps = [{"op": "sendRaw", "line": "a"}, {"op": "sendRaw", "line": "b" * 1_000_000}]

    report = refresh(suite, add_scenario(suite, steps=steps))

    assert "closed a pipe at step 1 (sendRaw), and went on running" in text_of(report)


def test_an_agent_that_reads_nothing_more_is_over_its_time(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios", QUICK, command=["/bin/sleep", "60"])
    steps = [{"op": "sendRaw", "line": "b" * 1_000_000}]

    report = refresh(suite, add_scenario(suite, steps=steps))

    assert "waited for the agent to read its stdin; it did not read it" in text_of(report)


def test_an_agent_that_ends_before_its_stdin_does_may(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "read line; sleep 0.01"]
    suite = make_suite(tmp_path / "scenarios", command=command)
    steps = [{"op": "sendRaw", "line": "a"}]

    assert refresh(suite, add_scenario(suite, steps=steps)).outcome == "passed"


def test_what_a_killed_agent_left_half_written_is_no_impurity(tmp_path: Path) -> None:
    agent = "printf '{}\\n{\"half\":'; touch ready; sleep 60"
    suite = make_suite(tmp_path / "scenarios", QUICK, command=["/bin/sh", "-c", agent])
    wait = {"op": "waitForFile", "path": "ready"}
    steps = [{"op": "restartAgent", "kill": True, "wait": wait} for _ in range(2)]

    report = refresh(suite, add_scenario(suite, steps=[*steps, steps[0]]))

    assert "was cut before its end" in text_of(report)
    assert "step" not in text_of(report)


def test_a_log_that_no_script_can_be_derived_from_is_told(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hi")[:2]]])
    log = scenario.directory / "session.jsonl"
    lines = [line for line in log.read_text().splitlines() if "llm/call" not in line]
    log.write_text("\n".join(lines) + "\n")

    report = refresh(suite, scenario)

    assert report.outcome == "error"
    assert "session.jsonl: no script can be derived" in text_of(report)


def test_the_run_directorys_name_is_never_written(suite: Suite) -> None:
    turns = [[use('basename "$(dirname "$PWD")"'), say("Hi")]]

    report = refresh(suite, add_scenario(suite, turns=turns))

    assert "the run directory's generated name is in what would be written" in text_of(report)


@pytest.mark.parametrize(
    ("wait", "what"),
    [
        ({"op": "waitForFile", "path": "never"}, "the file 'never'; the cwd holds note"),
        ({"op": "waitForSubagentTurnEnd"}, "child 1 to close turn 1; the log holds 0 events"),
    ],
)
def test_a_wait_that_is_over_its_time_says_what_the_run_held(
    suite: Suite, wait: dict[str, object], what: str
) -> None:
    scenario = add_scenario(suite, steps=[*HELLO[:2], {**wait, "timeoutMs": 50}])
    (scenario.directory / "workspace").mkdir()
    (scenario.directory / "workspace" / "note").touch()

    text = text_of(refresh(suite, scenario))

    assert f"step 2 ({wait['op']}): waited for {what}" in text
    assert "or raise its `timeoutMs`" in text


def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios", command=["/no/such/agent"])

    report = refresh(suite, add_scenario(suite))

    assert "the agent did not start: No such file or directory: '/no/such/agent'" in text_of(report)


@pytest.mark.parametrize(
    ("env", "what"),
    [("{'A=B' = 'x'}", "illegal environment variable name"), ('{A = "\\u0000"}', "embedded null")],
)
def test_an_environment_that_no_system_passes_on_is_told(suite: Suite, env: str, what: str) -> None:
    report = refresh(suite, add_scenario(suite, toml=f"env = {env}"))

    assert f"the agent did not start: {what}" in text_of(report)


def test_a_step_that_is_nested_too_deeply_is_told(suite: Suite) -> None:
    params: dict[str, object] = {}
    for _ in range(300):
        params = {"a": params}
    steps = [*HELLO[:2], {"op": "request", "method": "m", "params": params}]

    report = refresh(suite, add_scenario(suite, steps=steps))

    assert "input.json: nested too deeply: more than 200 levels" in text_of(report)


def test_the_scenario_deadline_ends_a_run_of_many_steps(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios")
    wait = {"op": "waitForFile", "path": "never"}
    scenario = add_scenario(suite, steps=[*HELLO[:2], wait], toml="timeout_s = 3")

    started = time.monotonic()
    report = refresh(suite, scenario)

    assert "the scenario is over its 3 s, at step 2 (waitForFile)" in text_of(report)
    assert time.monotonic() - started < 9
