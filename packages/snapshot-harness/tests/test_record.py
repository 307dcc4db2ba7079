"""Recording with the fake agent's own model, which echoes what it was told."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from judging import log
from kit import HELLO, add_scenario, make_suite, refresh, replay, set_up, text_of

from snapshot_harness import writing
from snapshot_harness.record import record_scenario, usage_of
from snapshot_harness.report import Report
from snapshot_harness.suite import Scenario, Suite

KEYED = 'keys = ["FAKE_KEY"]\n[record]\nendpoint = "https://a"\nmodel = "fake-1"\n'


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.delenv("FAKE_KEY", raising=False)
    made = make_suite(tmp_path / "scenarios", KEYED)
    (made.directory / ".env").write_text("FAKE_KEY=k\n")
    return made


def record(suite: Suite, scenario: Scenario, said: list[str] | None = None) -> Report:
    say = (said if said is not None else []).append
    return record_scenario(suite, Scenario(scenario.directory), say=say).report


def files(scenario: Scenario) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(scenario.directory.iterdir())}


def test_a_new_scenario_is_recorded_from_its_two_files_alone(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded", toml="pins_header = true")
    said: list[str] = []

    report = record(suite, scenario, said)

    assert report.outcome == "passed", text_of(report)
    assert sorted(report.written) == sorted(set(files(scenario)) - {"input.json"})
    assert replay(suite, scenario).outcome == "passed"
    assert said == [
        "one: calling https://a (model fake-1)",
        "one: 1 call, 7 tokens; replaying twice",
    ]
    log = (scenario.directory / "session.jsonl").read_text()
    assert "at {{lit}}any}}" in log
    table = tomllib.loads((scenario.directory / "scenario.toml").read_text())["recorded"]
    assert table.pop("date").count("-") == 2
    assert table == {"endpoint": "https://a", "model": "fake-1", "agent": "fake 7"}


def test_a_second_recording_replaces_the_first_and_its_stale_children(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded")
    record(suite, scenario)
    first = files(scenario)
    (scenario.directory / "session.1.jsonl").write_bytes(first["session.jsonl"])
    prompt = {"op": "prompt", "text": "Something else"}
    add_scenario(suite, steps=[*HELLO[:2], prompt], origin="recorded")

    assert record(suite, scenario).outcome == "passed"

    second = files(scenario)
    assert set(second) == set(first)
    assert b"Something else" in second["session.jsonl"]
    assert replay(suite, scenario).outcome == "passed"


def test_refresh_of_a_recording_changes_nothing(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded")
    record(suite, scenario)

    report = refresh(suite, scenario)

    assert (report.outcome, list(report.written)) == ("passed", [])


def test_the_key_comes_from_the_file_and_reaches_the_live_run_alone(suite: Suite) -> None:
    (suite.directory / ".env").write_text("FAKE_KEY=short\n")
    scenario = add_scenario(suite, origin="recorded")

    assert record(suite, scenario).outcome == "passed"

    assert b"short." in files(scenario)["session.jsonl"]
    assert replay(suite, scenario).outcome == "passed"


def test_a_credential_is_neither_written_nor_shown(suite: Suite) -> None:
    secret = "0123456789abcdef0123"  # noqa: S105  made up
    (suite.directory / ".env").write_text(f"FAKE_KEY={secret}\n")
    scenario = add_scenario(suite, origin="recorded")
    before = files(scenario)

    report = record(suite, scenario)

    assert report.outcome == "failed"
    assert report.problems[0] == "the recording may not be committed; nothing was written"
    assert "the value of FAKE_KEY is in what would be written" in text_of(report)
    assert secret not in text_of(report)
    assert files(scenario) == before


def test_a_credential_in_the_agents_stderr_is_not_shown(suite: Suite) -> None:
    secret = "0123456789abcdef0123"  # noqa: S105  made up
    (suite.directory / ".env").write_text(f"FAKE_KEY={secret}\n")
    scenario = add_scenario(suite, origin="recorded", fake="tell-key exit")

    text = text_of(record(suite, scenario))

    assert "the key is [the value of FAKE_KEY]" in text
    assert secret not in text


FAILURES = {
    "the live run fails": ("exit", "the live run failed; nothing was written"),
    "the agent misbehaves at its end": ("bad-exit", "the live run failed; nothing was written"),
    "the agent keeps no log": ("no-log", "no session log was found below"),
    "the replay differs": ("alter-replay", "the first replay of the recording differs"),
    "the replay fails": ("exit-in-replay", "the first replay of the recording failed"),
    "something moves": ("moving", "two replays of the recording differ; this field moves"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_leaves_the_old_scenario(suite: Suite, failure: str) -> None:
    words, message = FAILURES[failure]
    scenario = add_scenario(suite, origin="recorded")
    record(suite, scenario)
    set_up(scenario.directory, origin="recorded", fake=words)
    before = files(scenario)

    report = record(suite, scenario)

    assert report.outcome == "failed"
    assert message in text_of(report)
    assert files(scenario) == before


def test_the_first_moving_field_is_named(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded", fake="moving")

    text = text_of(record(suite, scenario))

    assert "stdout.expected.jsonl:3" in text
    assert "at:       params.update.moving" in text


def test_a_full_disk_leaves_the_old_scenario(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = add_scenario(suite, origin="recorded")
    before = files(scenario)

    def write_scenario(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "write_scenario", write_scenario)

    report = record(suite, scenario)

    assert report.outcome == "error"
    assert "No space left on device" in text_of(report)
    assert files(scenario) == before


@pytest.mark.parametrize("cut", ["promptAndCancel", "cancel", "restartAgent"])
def test_a_cut_without_a_condition_is_refused_before_anything_is_called(
    suite: Suite, cut: str
) -> None:
    steps: list[dict[str, object]] = [{**HELLO[2], "detach": True}, {"op": cut}]
    if cut == "promptAndCancel":
        steps = [{"op": "initialize"}, {"op": cut, "text": "Hi"}]
    scenario = add_scenario(suite, steps=steps, origin="recorded")
    said: list[str] = []

    report = record(suite, scenario, said)

    assert "steps.1: a live model hangs nowhere on purpose" in text_of(report)
    assert said == []


def test_a_call_that_was_cut_is_kept_as_the_fact_it_is(suite: Suite) -> None:
    wait = {"op": "waitForUpdate", "update": {"sessionUpdate": "agent_message_chunk"}}
    step = {"op": "promptAndCancel", "text": "Hi", "wait": wait}
    scenario = add_scenario(suite, steps=[*HELLO[:2], step], origin="recorded", fake="endless")

    report = record(suite, scenario)

    assert report.outcome == "passed", text_of(report)
    log = files(scenario)["session.jsonl"]
    assert b'"finish"' not in log
    assert b'"aborted"' in log
    assert replay(suite, scenario).outcome == "passed"


def test_an_agent_without_a_log_cannot_be_recorded(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios", 'log = "none"')

    report = record(suite, add_scenario(suite, origin="recorded"))

    assert "persists no session log, so there is nothing to record from" in text_of(report)


def test_an_override_stays_and_serves_the_replays(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded", toml="overridden = true")
    override = (
        '{"patches": [{"at": 0, "entry": {"kind": "chunks", "chunks": '
        '[{"type": "finish", "reason": {"kind": "stop"}}]}}]}'
    )
    (scenario.directory / "replay.override.json").write_text(override)

    report = record(suite, scenario)

    assert report.outcome == "passed", text_of(report)
    assert replay(suite, scenario).outcome == "passed"


def test_a_recording_may_be_packed(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded", toml='layout = "packed"')

    report = record(suite, scenario)

    assert report.outcome == "passed", text_of(report)
    assert replay(suite, scenario).outcome == "passed"


def test_a_scenario_toml_that_can_not_be_written_is_refused_before_anything_is_called(
    suite: Suite,
) -> None:
    scenario = add_scenario(suite, origin="recorded", toml='recorded = { model = "m" }')
    before = files(scenario)
    said: list[str] = []

    report = record(suite, scenario, said)

    (problem,) = report.problems
    assert problem == (
        f"{scenario.directory}/scenario.toml: `recorded` stands there in a form that record "
        "can't replace\n  hint: remove it: record writes it, as a table of its own"
    )
    assert (said, files(scenario)) == ([], before)


def test_no_key_no_call_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_KEY", raising=False)
    suite = make_suite(tmp_path / "scenarios", 'keys = ["FAKE_KEY"]')
    said: list[str] = []

    report = record(suite, add_scenario(suite, origin="recorded"), said)

    assert "recording calls a live model, and no key is there" in text_of(report)
    assert said == []


def test_a_password_in_the_endpoint_is_neither_told_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", "k")
    toml = 'keys = ["FAKE_KEY"]\n[record]\nendpoint = "https://user:hunter2hunter2@a/v1?k=v"\n'
    suite = make_suite(tmp_path / "scenarios", toml)
    scenario = add_scenario(suite, origin="recorded")
    said: list[str] = []

    report = record(suite, scenario, said)

    assert report.outcome == "passed", text_of(report)
    assert said[0] == "one: calling https://a/v1"
    assert 'endpoint = "https://a/v1"' in (scenario.directory / "scenario.toml").read_text()


def test_what_a_failed_recording_used_is_counted(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded", fake="moving")

    outcome = record_scenario(suite, scenario)

    assert outcome.report.outcome == "failed"
    assert str(outcome.usage) == "1 call, 7 tokens"


def test_the_tokens_of_a_compaction_count() -> None:
    usage = {"inputTokens": 90, "outputTokens": 9}
    summary = {"summary": "s", "rawOutput": [{"type": "text", "text": "s"}], "usage": usage}
    events: list[dict[str, object]] = [
        {"type": "compaction/summary", "data": {**summary, "llmStreamCall": True}},
        {"type": "compaction/summary", "data": {**summary, "llmStreamCall": False}},
        {"type": "note", "data": "none"},
    ]

    assert str(usage_of([log(events)])) == "1 call, 99 tokens"
