"""What a person is told who must do something about a run that failed: where, and what to do."""

from pathlib import Path

import pytest
from kit import (
    HELLO,
    START,
    add_scenario,
    make_suite,
    refresh,
    refreshed,
    replay,
    say,
    set_up,
    text_of,
)

from snapshot_harness.record import record_scenario
from snapshot_harness.report import Report
from snapshot_harness.suite import Scenario, Suite


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.chdir(tmp_path)
    return make_suite(tmp_path / "scenarios")


def test_a_prompt_that_is_refused_says_how_to_expect_it_and_what_differed_first(
    suite: Suite,
) -> None:
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hello", " you")]]))
    set_up(scenario.directory, fake="alter refuse")

    report = replay(suite, scenario)

    (problem,) = report.problems
    assert problem == (
        "step 2 (prompt): session/prompt was answered with an error: "
        '{"code": -32603, "message": "failed"}\n'
        "  hint: if that is meant, expect it with promptExpectError; "
        "if not, see what differed first, and what the agent wrote to stderr"
    )
    (cause,) = report.causes
    text = text_of(report)
    assert f"scenarios/one/{cause.file}:{cause.line}: " in text
    assert "I refuse" not in text.partition("the last the agent wrote to stderr")[0]
    assert text.count("I refuse") == 1


def test_where_nothing_can_be_compared_the_failure_stands_alone(suite: Suite) -> None:
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hello")]]))

    set_up(scenario.directory, fake="noise")
    report = replay(suite, scenario)
    assert (len(report.problems), list(report.causes)) == (1, [])


def test_a_left_over_call_has_its_place_and_what_to_do(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hi"), say("More")]])

    (problem,) = refresh(suite, scenario).problems
    assert problem == (
        "scenarios/one/session.jsonl:7: 1 model call of 2 never asked for, "
        "the first of them number 2\n"
        "  hint: record again, or remove the rows of the calls that nobody asks for"
    )


def test_a_log_of_another_name_is_told_with_its_name(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hi")]], fake="other-log-name")

    for report in (refresh(suite, scenario), record(suite)):
        assert (
            "no session log was found below DSH_SNAPSHOT_SESSIONS_ROOT; found there: "
        ) in text_of(report)
        assert "/log.jsonl\n  hint: a log is named session.jsonl or session.jsonl.zstd" in (
            text_of(report)
        )


def record(suite: Suite) -> Report:
    scenario = add_scenario(suite, "live", origin="recorded", fake="other-log-name")
    return record_scenario(suite, scenario).report


def test_no_log_at_all_is_told_where_one_is_compared(suite: Suite) -> None:
    told = "no session log was found below DSH_SNAPSHOT_SESSIONS_ROOT; found there: nothing"
    prompts = add_scenario(suite, turns=[[say("Hi")]], fake="no-log")
    silent = add_scenario(suite, "silent", steps=START, fake="no-log")
    elsewhere = add_scenario(
        suite, "else", turns=[[say("Hi")]], toml="compares_log = false", fake="no-log"
    )

    assert told in text_of(refresh(suite, prompts))
    assert refresh(suite, silent).outcome == "passed"
    assert refresh(suite, elsewhere).outcome == "passed"


def test_the_agents_stderr_is_shown_once_when_a_recording_fails(suite: Suite) -> None:
    scenario = add_scenario(suite, origin="recorded", steps=HELLO, fake="exit")

    text = text_of(record_scenario(suite, scenario).report)

    assert text.count("I am gone") == 1


def test_a_failure_of_the_harness_is_told_as_its_own(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = add_scenario(suite, turns=[[say("Hi")]])
    (scenario.directory / "workspace").mkdir()
    (scenario.directory / "workspace" / "gone").write_text("x")
    monkeypatch.setattr("shutil.copyfile", no_space)

    for report in (
        refresh(suite, scenario),
        record_scenario(suite, Scenario(live(suite, scenario))).report,
    ):
        assert report.outcome == "error"
        (problem,) = report.problems
        assert problem == (
            "the harness failed, not the agent: [Errno 28] No space left on device\n"
            "  It was at copy_workspace, _copy_file.\n"
            "  hint: see to the file, the disk or the permissions that it names, and run again"
        )


def live(suite: Suite, scenario: Scenario) -> Path:
    set_up(scenario.directory, origin="recorded")
    assert suite.directory == scenario.directory.parent
    return scenario.directory


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_the_command_that_accepts_a_change_is_quoted_for_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = make_suite(tmp_path / "my scenarios")
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hello")]]))
    set_up(scenario.directory, fake="late-update")

    report = replay(suite, scenario)

    assert report.accept == "snapshot-harness review 'my scenarios' --accept one"


def test_where_nothing_can_be_kept_the_difference_is_told_all_the_same(suite: Suite) -> None:
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hello")]]))
    set_up(scenario.directory, fake="late-update")
    (suite.directory / ".snapshot").write_text("a file in the way")

    report = replay(suite, scenario)

    text = text_of(report)
    assert "unexpected update agent_message_chunk after this line" in text
    assert "the actual files could not be kept: " in text
    assert (report.outcome, report.kept, report.accept) == ("failed", None, "")
