"""The plugin as its users see it: collected, filtered, reported, refused."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest
from kit import HELLO, add_scenario, make_suite, refreshed, say, set_up

from snapshot_harness import guards
from snapshot_harness.run_report import RunReport
from snapshot_harness.suite import Suite

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:randomly", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "GITHUB_ACTIONS", "FAKE_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    """Two scenarios that pass, the first of which pins the headers."""
    made = make_suite(pytester.path / "scenarios", 'keys = ["FAKE_KEY"]')
    for name, toml in (("one", "pins_header = true"), ("two", "")):
        refreshed(made, add_scenario(made, name, turns=[[say(f"I am {name}")]], toml=toml))
    return made


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest(*OPTIONS, "scenarios", *arguments)


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return {key: n for key, n in result.parseoutcomes().items() if key != "warnings"}


def text_of(result: pytest.RunResult) -> str:
    return result.stdout.str() + result.stderr.str()


def change_prompt(suite: Suite, *names: str) -> None:
    for name in names:
        toml = "pins_header = true" if name == "one" else ""
        set_up(suite.directory / name, toml=toml, fake="other-prompt")


def test_a_suite_is_collected_from_its_file_alone(pytester: pytest.Pytester, suite: Suite) -> None:
    workspace = suite.directory / "one" / "workspace"
    workspace.mkdir()
    (workspace / "test_of_the_workspace.py").write_text("def test_it() -> None: ...\n")

    result = run(pytester, "--collect-only", "-q")

    assert result.outlines[:3] == [
        "scenarios/suite.toml::one",
        "scenarios/suite.toml::two",
        "scenarios/suite.toml::[[]guards[]]".replace("[[]", "[").replace("[]]", "]"),
    ]


def test_scenarios_guards_and_headers_are_reported(pytester: pytest.Pytester, suite: Suite) -> None:
    assert suite.directory.is_dir()
    result = run(pytester, "-v")

    assert outcomes(result) == {"passed": 4}
    result.stdout.fnmatch_lines(
        [
            "scenarios/suite.toml::one PASSED*",
            "scenarios/suite.toml::two PASSED*",
            "scenarios/suite.toml::[[]guards[]] PASSED*",
            "scenarios/suite.toml::header[[]default[]] PASSED*",
            "*snapshots*",
            "PASSED one (* s): as expected",
            "PASSED two (* s): as expected",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["-k", "two"], ["two"]),
        (["--deselect", "scenarios/suite.toml::two", "-k", "not guards"], ["one"]),
    ],
)
def test_a_scenario_is_chosen_as_any_test(
    pytester: pytest.Pytester, suite: Suite, arguments: list[str], names: list[str]
) -> None:
    assert suite.directory.is_dir()
    result = run(pytester, *arguments)

    assert re.findall(r"^PASSED (\w+)", text_of(result), re.MULTILINE) == names


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_choice_that_fits_nothing_says_what_there_is(
    pytester: pytest.Pytester, suite: Suite, workers: list[str]
) -> None:
    assert suite.directory.is_dir()
    near = run(pytester, "-k", "tow", *workers)
    far = run(pytester, "-k", "nothing", *workers)

    assert near.ret == far.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    near.stdout.fnmatch_lines(["-k 'tow' fits no scenario", "  hint: did you mean 'two'?"])
    far.stdout.fnmatch_lines(["-k 'nothing' fits no scenario", "  hint: known: one, two"])


def test_a_node_id_names_one_scenario(pytester: pytest.Pytester, suite: Suite) -> None:
    assert suite.directory.is_dir()
    result = pytester.runpytest(*OPTIONS, "scenarios/suite.toml::two")

    assert outcomes(result) == {"passed": 2}


@pytest.mark.parametrize("argument", ["scenarios/two", "scenarios/two/", "scenarios/one/../two"])
def test_a_scenarios_directory_names_it_too(
    pytester: pytest.Pytester, suite: Suite, argument: str
) -> None:
    assert suite.directory.is_dir()
    result = pytester.runpytest(*OPTIONS, "-v", argument)

    assert outcomes(result) == {"passed": 2}
    result.stdout.fnmatch_lines(["scenarios/suite.toml::two PASSED*"])


def test_in_a_scenarios_directory_pytest_alone_runs_it(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.directory / "two")

    assert outcomes(pytester.runpytest(*OPTIONS)) == {"passed": 2}


def test_a_failure_tells_the_cause_the_place_and_the_remedy(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    path = suite.directory / "two" / "stdout.expected.jsonl"
    path.write_text(path.read_text().replace("I am two", "I am too"))

    result = run(pytester)

    assert outcomes(result) == {"failed": 1, "passed": 3}
    result.stdout.fnmatch_lines(
        [
            "two: behaviour differs in 1 place",
            "scenarios/two/stdout.expected.jsonl:3: *update agent_message_chunk differs",
            "  at:       params.update.content.text",
            '  expected: "I am too"',
            '  actual:   "I am two"',
            "  the actual files are in scenarios/.snapshot/two",
            "  hint: if this change is meant: snapshot-harness review scenarios --accept two",
        ]
    )
    assert "Traceback" not in text_of(result)


def test_an_error_of_ours_shows_where_it_came_from(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Suite) -> list[object]:
        raise ZeroDivisionError

    monkeypatch.setattr(guards, "run_guards", broken)

    result = run(pytester, "-k", "guards")

    assert outcomes(result) == {"failed": 1, "deselected": 2}
    assert "ZeroDivisionError" in text_of(result)
    assert suite.directory.is_dir()


def test_an_orphan_directory_fails_the_guards_alone(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    (suite.directory / "orphan").mkdir()

    result = run(pytester)

    assert outcomes(result) == {"failed": 1, "passed": 3}
    result.stdout.fnmatch_lines(["scenarios/orphan: a directory without scenario.toml"])


def test_a_suite_that_cannot_be_read_is_a_collection_error(pytester: pytest.Pytester) -> None:
    make_suite(pytester.path / "scenarios").path.write_text("comand = []\n")

    result = run(pytester)

    assert outcomes(result) == {"errors": 1}
    result.stdout.fnmatch_lines(["*suite.toml:1: unknown key 'comand'"])


def test_a_scenario_that_cannot_be_read_fails_itself(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    (suite.directory / "two" / "scenario.toml").write_text("why = 1\n")

    result = run(pytester, "-k", "one or two")

    assert outcomes(result) == {"failed": 1, "passed": 2, "deselected": 1}
    result.stdout.fnmatch_lines(["*scenario.toml:1: why: input should be a valid string"])


def test_scenarios_of_other_platforms_are_counted_and_not_collected(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    set_up(suite.directory / "two", toml='platforms = ["nowhere"]')

    result = run(pytester, "-k", "not guards")

    assert outcomes(result) == {"passed": 2, "deselected": 1}
    result.stdout.fnmatch_lines(["snapshots: 1 for other platforms, not run: two"])


def test_scenarios_of_other_platforms_are_counted_where_they_are_collected(
    pytester: pytest.Pytester,
) -> None:
    for place, name in (("tests/agent/scenarios", "deep"), ("build/scenarios", "ignored")):
        suite = make_suite(pytester.path / place)
        add_scenario(suite, name, toml='platforms = ["beos"]')

    result = pytester.runpytest(*OPTIONS, "--collect-only")

    result.stdout.fnmatch_lines(["snapshots: 1 for other platforms, not run: deep"])
    result.stdout.no_fnmatch_line("*ignored*")


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_shards_together_are_the_whole_run_and_the_first_has_the_guards(
    pytester: pytest.Pytester, suite: Suite, workers: list[str]
) -> None:
    refreshed(suite, add_scenario(suite, "three", turns=[[say("I am three")]]))
    ran = []
    for shard in ("1/2", "2/2"):
        result = run(pytester, "-v", f"--snapshot-shard={shard}", *workers)
        assert result.ret == pytest.ExitCode.OK
        found = re.findall(r"PASSED (?:\[.*\] )?scenarios/suite.toml::(\S+)", text_of(result))
        found += re.findall(r"scenarios/suite.toml::(\S+) PASSED", text_of(result))
        ran.append(sorted(found))

    assert ran == [["[guards]", "header[default]", "one", "two"], ["header[default]", "three"]]


def test_a_shard_says_what_part_of_the_suite_it_is(pytester: pytest.Pytester, suite: Suite) -> None:
    set_up(suite.directory / "two", toml='platforms = ["nowhere"]')

    first = run(pytester, "--snapshot-shard=1/2")
    second = run(pytester, "--snapshot-shard=2/2", "--snapshot-report=report.json")

    first.stdout.fnmatch_lines(
        ["snapshots: shard 1/2 has 1 of the 2 scenarios of scenarios/suite.toml"]
    )
    first.stdout.no_fnmatch_line("*for other platforms*")
    second.stdout.fnmatch_lines(["snapshots: 1 for other platforms, not run: two"])
    assert second.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert json.loads((pytester.path / "report.json").read_text())["shard"] == "2/2"


def test_on_windows_it_says_so_at_once(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert suite.directory.is_dir()
    collect = "snapshot_harness.pytest_plugin.items.sys"
    monkeypatch.setattr(
        collect, type("sys", (), {"platform": "win32", "executable": sys.executable})
    )

    result = run(pytester)

    assert outcomes(result) == {"errors": 1}
    result.stdout.fnmatch_lines(["*snapshot scenarios run on Linux and macOS, not on Windows"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_changed_prompt_is_one_failure_alone_under_xdist_and_in_junit(
    pytester: pytest.Pytester, suite: Suite, workers: list[str]
) -> None:
    change_prompt(suite, "one", "two")

    result = run(pytester, "--junitxml=junit.xml", *workers)

    assert outcomes(result) == {"failed": 1, "passed": 3}
    result.stdout.fnmatch_lines(
        [
            "*header[[]default[]]*",
            "the prompt differs from the pinned one:",
            "  -You are a fake.",
            "  +You are another fake.",
            "  seen in 2 scenarios: one, two",
            "  hint: if this change is meant, refresh 'one': it pins this class",
        ]
    )
    xml = ET.parse(pytester.path / "junit.xml").getroot()[0]  # noqa: S314  our own
    cases = {case.attrib["name"]: [child.tag for child in case] for case in xml.iter("testcase")}
    assert xml.attrib["tests"] == "4"
    assert cases == {"one": [], "two": [], "[guards]": [], "header[default]": ["failure"]}
    assert "properties" not in (pytester.path / "junit.xml").read_text()


def test_a_refresh_after_a_changed_prompt_changes_one_file(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    change_prompt(suite, "one", "two")
    before = {path: path.read_bytes() for path in suite.directory.rglob("*") if path.is_file()}

    result = run(pytester, "--snapshot-mode=refresh")

    after = {path: path.read_bytes() for path in suite.directory.rglob("*") if path.is_file()}
    assert outcomes(result) == {"passed": 3}
    assert [path.name for path in after if after[path] != before.get(path)] == [
        "system-prompt.expected.md"
    ]


def test_headers_are_judged_also_where_the_run_stops_early(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    path = suite.directory / "one" / "stdout.expected.jsonl"
    path.write_text("")

    result = run(pytester, "-x")

    assert outcomes(result) == {"failed": 1, "passed": 1}


def test_a_class_without_a_pin_is_told(pytester: pytest.Pytester, suite: Suite) -> None:
    set_up(suite.directory / "one")

    result = run(pytester, "-k", "two")

    result.stdout.fnmatch_lines(["*suite.toml: no scenario pins header class 'default'"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_report_is_written_once(
    pytester: pytest.Pytester, suite: Suite, workers: list[str]
) -> None:
    (suite.directory / "orphan").mkdir()
    (suite.directory / "two" / "stdout.expected.jsonl").write_text("{}\n")

    run(pytester, "--snapshot-report=out/report.json", *workers)

    report = json.loads((pytester.path / "out" / "report.json").read_text())
    assert (report["version"], report["mode"], report["shard"]) == (1, "replay", None)
    found = [(one["scenario"], one["outcome"]) for one in report["scenarios"]]
    assert found == [("one", "passed"), ("two", "failed")]
    assert report["scenarios"][1]["causes"][0]["line"] == 1
    assert report["headers"] == {"scenarios/suite.toml::header[default]": []}
    assert len(report["guards"]) == 1 + report["guards"][1:].count(report["guards"][-1])


def test_failures_are_annotated_on_actions(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (suite.directory / "orphan").mkdir()
    (suite.directory / "two" / "session.jsonl").unlink()

    result = run(pytester, "-q")

    found = re.findall(r"^::error file=(\S+?),line", text_of(result), re.MULTILINE)
    assert {Path(name).name for name in found} >= {"scenario.toml", "orphan", "session.jsonl"}
    assert "= snapshots =" not in text_of(result)


def usage_error(pytester: pytest.Pytester, *arguments: str) -> str:
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return text_of(result)


def test_an_unknown_mode_is_a_usage_error(pytester: pytest.Pytester, suite: Suite) -> None:
    assert suite.directory.is_dir()

    assert "invalid choice: 'relax'" in usage_error(pytester, "--snapshot-mode=relax")


@pytest.mark.parametrize("text", ["3/2", "0/2", "2", "a/b", "1/0", "-1/2", "1/2/3", "1 / 2", ""])
def test_a_shard_that_is_none_is_a_usage_error(
    pytester: pytest.Pytester, suite: Suite, text: str
) -> None:
    assert suite.directory.is_dir()

    told = usage_error(pytester, f"--snapshot-shard={text}")

    assert f"argument --snapshot-shard: {text!r} is no shard" in told
    assert "hint: I/N with I from 1 to N, as 2/4 for the second of four" in told


@pytest.mark.parametrize("mode", ["refresh", "record"])
def test_a_shard_is_never_written(pytester: pytest.Pytester, suite: Suite, mode: str) -> None:
    assert suite.directory.is_dir()

    told = usage_error(pytester, "--snapshot-shard=1/2", f"--snapshot-mode={mode}")

    assert f"--snapshot-shard cuts a replay, and --snapshot-mode={mode} writes" in told
    assert "hint: choose by name: -k to refresh, --snapshot-record to record" in told


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["refresh"], "refresh at your desk, and commit what changed after you have read it"),
        (
            ["refresh", "--snapshot-on-ci"],
            "refresh at your desk, and commit what changed after you have read it",
        ),
        (["record"], "--snapshot-on-ci allows it, on purpose and in plain sight"),
    ],
)
@pytest.mark.parametrize("ci", ["1", "true"])
def test_on_ci_nothing_is_written_unless_that_is_said(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    hint: str,
    ci: str,
) -> None:
    suite = make_suite(pytester.path / "scenarios")
    monkeypatch.setenv("CI", ci)
    mode, *more = options

    text = usage_error(pytester, f"--snapshot-mode={mode}", *more)

    assert f"--snapshot-mode={mode} writes fixtures, and CI only replays" in text
    assert f"hint: {hint}" in text
    assert suite.directory.is_dir()


def test_on_ci_record_is_possible_in_plain_sight(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_suite(pytester.path / "scenarios")
    monkeypatch.setenv("CI", "true")

    text = usage_error(pytester, "--snapshot-mode=record", "--snapshot-on-ci")

    assert "recording costs money, so say what" in text


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "recording costs money, so say what"),
        (["--snapshot-record=liv"], "no scenario is called 'liv'"),
        (["--snapshot-record=one"], "'one' is authored, and never recorded"),
        (["--snapshot-record=live"], "no key is there"),
        (["--snapshot-all", "-n", "2"], "no key is there"),
    ],
)
def test_record_is_refused_before_anything_runs(
    pytester: pytest.Pytester, suite: Suite, arguments: Sequence[str], what: str
) -> None:
    add_scenario(suite, "live", origin="recorded")

    assert what in usage_error(pytester, "--snapshot-mode=record", *arguments)


def test_record_says_what_it_calls_and_shows_progress(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("live", "livelier"):
        add_scenario(suite, name, steps=HELLO, origin="recorded")
    monkeypatch.setenv("FAKE_KEY", "k")

    result = run(pytester, "--snapshot-mode=record", "--snapshot-record=live")

    assert outcomes(result) == {"passed": 2}
    result.stdout.fnmatch_lines(
        [
            "recording live from the agent's own provider",
            "live: calling the agent's own provider",
            "live: 1 call, 7 tokens; replaying twice",
            "PASSED live (* s): 3 files written; 1 call, 7 tokens",
            "recorded 1 scenario: 1 call, 7 tokens, * s",
        ]
    )
    assert not (suite.directory / "livelier" / "session.jsonl").exists()


@pytest.mark.parametrize("verbosity", ["-q", "-v"])
def test_progress_stands_on_lines_of_its_own(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch, verbosity: str
) -> None:
    for name in ("live", "livelier"):
        add_scenario(suite, name, steps=HELLO, origin="recorded")
    monkeypatch.setenv("FAKE_KEY", "k")

    result = run(pytester, "--snapshot-mode=record", "--snapshot-all", verbosity)

    assert result.outlines.count("live: calling the agent's own provider") == 1
    assert result.outlines.count("livelier: calling the agent's own provider") == 1


def test_recording_works_under_xdist_and_without_capturing(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("live", "livelier"):
        add_scenario(suite, name, steps=HELLO, origin="recorded")
    monkeypatch.setenv("FAKE_KEY", "k")

    parallel = run(pytester, "--snapshot-mode=record", "--snapshot-all", "-n", "2")
    alone = run(pytester, "--snapshot-mode=record", "--snapshot-all", "-p", "no:capture")

    assert outcomes(parallel) == {"passed": 3}
    assert outcomes(alone) == {"passed": 3}
    for name in ("live", "livelier"):
        parallel.stdout.fnmatch_lines([f"{name}: recording", f"PASSED {name} (*; 1 call, 7 tokens"])
    parallel.stdout.fnmatch_lines(["recorded 2 scenarios: 2 calls, 14 tokens, * s"])


def test_a_report_that_can_not_be_written_is_refused_before_anything_runs(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    (pytester.path / "file").write_text("")

    told = usage_error(pytester, "--snapshot-report=file/report.json")

    assert "--snapshot-report: file/report.json can't be written: " in told
    assert "hint: name a file in a directory that you may write to" in told
    assert suite.directory.is_dir()


def test_a_report_that_can_not_be_written_in_the_end_fails_the_run(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert suite.directory.is_dir()

    def full(_: RunReport, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunReport, "write", full)

    result = run(pytester, "--snapshot-report=report.json")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"passed": 4}
    told = "--snapshot-report: report.json can't be written: No space left on device"
    result.stdout.fnmatch_lines([told])


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_suite_that_can_not_be_read_is_reported_and_annotated(
    pytester: pytest.Pytester,
    suite: Suite,
    monkeypatch: pytest.MonkeyPatch,
    workers: list[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("SOME_TOKEN", "correct-horse-battery")
    with suite.path.open("a") as file:
        file.write("\n\ncorrect-horse-battery = 1\n")
    lines = suite.path.read_text().split("\n")
    line = lines.index("correct-horse-battery = 1") + 1

    result = run(pytester, "--snapshot-report=report.json", *workers)

    (error,) = json.loads((pytester.path / "report.json").read_text())["errors"]
    assert "unknown key '[the value of SOME_TOKEN]'" in error
    annotation = f"::error file=scenarios/suite.toml,line={line},title=snapshot suite::*"
    result.stdout.fnmatch_lines([annotation])
    assert "correct-horse-battery" not in text_of(result).replace(str(pytester.path), "")


def test_a_changed_prompt_is_annotated_and_shows_no_credential(
    pytester: pytest.Pytester, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("SOME_TOKEN", "You are another fake.")
    change_prompt(suite, "one", "two")

    result = run(pytester, "--snapshot-report=report.json", "--junitxml=junit.xml")

    file = "scenarios/one/system-prompt.expected.md"
    result.stdout.fnmatch_lines(
        [f"::error file={file},line=1,title=snapshot header[[]default[]]::*"]
    )
    files = [pytester.path / name for name in ("report.json", "junit.xml")]
    for text in (text_of(result), *(path.read_text() for path in files)):
        assert "+[the value of SOME_TOKEN]" in text
        assert "You are another fake." not in text


def test_recording_a_suite_far_below_needs_its_key_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = make_suite(pytester.path / "a" / "b" / "scenarios", 'keys = ["FAKE_KEY"]')
    add_scenario(deep, "live", origin="recorded", toml="pins_header = true")
    for ignored in ("node_modules/x", "env/y"):
        (pytester.path / ignored).mkdir(parents=True)
        (pytester.path / ignored / "suite.toml").write_text("what = 1")
    (pytester.path / "env" / "pyvenv.cfg").write_text("")
    arguments = (*OPTIONS, "--snapshot-mode=record", "--snapshot-all")

    refused = pytester.runpytest(*arguments)
    monkeypatch.setenv("FAKE_KEY", "k")
    recorded = pytester.runpytest(*arguments)

    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "no key is there" in text_of(refused)
    recorded.stdout.fnmatch_lines(["recording live from the agent's own provider"])
    assert outcomes(recorded) == {"passed": 2}


def test_other_tests_of_a_project_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_it() -> None:\n    assert True\n")

    result = pytester.runpytest(*OPTIONS)

    assert outcomes(result) == {"passed": 1}
    assert "snapshot" not in re.sub(r"plugins: .*|rootdir: .*", "", text_of(result))
