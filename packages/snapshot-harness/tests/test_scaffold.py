"""`new` and `init`, as one types them."""

import os
import sys
import tomllib
from pathlib import Path

import pytest
from kit import FAKE_AGENT, make_suite, refresh, replay

from snapshot_harness.__main__ import main
from snapshot_harness.suite import Scenario, Suite, read_suite


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def suite(here: Path) -> Suite:
    return make_suite(here / "scenarios")


def test_a_suite_is_made_for_an_agent_and_passes_at_once(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = here / "agent.py"
    agent.write_text(FAKE_AGENT.read_text())

    assert main(["init", "--", "python3", "agent.py", "--flag"]) == 0

    suite = read_suite(here / "scenarios" / "suite.toml")
    assert suite.file.command == ["{python}", "{suite}/../agent.py", "--flag"]
    assert [one.name for one in suite.scenarios] == ["handshake"]
    assert replay(suite, suite.scenarios[0]).outcome == "passed"
    assert "# [record]\n# endpoint = " in suite.path.read_text()
    assert ".snapshot/" in (here / "scenarios" / ".gitignore").read_text()
    assert capsys.readouterr().out.splitlines() == [
        "wrote scenarios: your agent shakes hands and makes a session, and does so again in replay",
        "next: snapshot-harness new NAME --suite scenarios",
    ]


def test_an_agent_that_makes_no_session_gets_its_handshake_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    frame = json.loads(line)\n"
        "    kind = 'result' if frame['method'] == 'initialize' else 'error'\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': frame['id'], kind: {}}), flush=True)\n"
    )

    assert main(["init", "--directory", "s", "--", sys.executable, "-c", agent]) == 0

    assert "newSession" not in (here / "s" / "handshake" / "input.json").read_text()
    assert "your agent shakes hands, and" in capsys.readouterr().out


def test_an_agent_that_does_not_shake_hands_is_told_why(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--", "/no/such/agent"]) == 1

    told = capsys.readouterr()
    assert "the agent did not start: No such file or directory: '/no/such/agent'" in told.err
    then = "pytest scenarios --snapshot-mode=refresh"
    assert f"correct what is said above, then: {then}\n" in told.err
    assert (here / "scenarios" / "suite.toml").is_file()


def test_a_suite_is_never_overwritten(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    before = suite.path.read_text()

    assert main(["init", "--", "agent"]) == 2

    assert capsys.readouterr().err == (
        "snapshot-harness: scenarios/suite.toml is there already\n"
        "  hint: snapshot-harness new adds a scenario to it; --directory makes another suite\n"
    )
    assert suite.path.read_text() == before


def test_an_authored_scenario_works_after_one_refresh(
    suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "first", "--authored", "--why", 'It "answers".']) == 0

    scenario = Scenario(suite.directory / "first")
    assert refresh(suite, scenario).outcome == "passed"
    assert replay(suite, scenario).outcome == "passed"
    assert scenario.file.why == 'It "answers".'
    assert scenario.file.pins_header
    assert capsys.readouterr().out == (
        "wrote scenarios/first; next: pytest scenarios --snapshot-mode=refresh -k first\n"
    )


def test_a_scenario_to_be_recorded_is_its_two_files(
    suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["new", "first", "--authored"])
    capsys.readouterr()

    assert main(["new", "second", "--suite", "scenarios/suite.toml", "--prompt", "Why?"]) == 0

    directory = suite.directory / "second"
    assert sorted(path.name for path in directory.iterdir()) == ["input.json", "scenario.toml"]
    table = tomllib.loads((directory / "scenario.toml").read_text())
    assert table["origin"] == "recorded"
    assert "'Why?'" in table["why"]
    assert "pins_header" not in table
    assert "--snapshot-mode=record --snapshot-record=second" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "First",
            (
                "snapshot-harness: 'First' is no name for a scenario\n"
                "  hint: lower-case letters, digits and dashes, not a dash first\n"
            ),
        ),
        (
            "taken",
            (
                "snapshot-harness: scenarios/taken is there already\n"
                "  hint: choose another name, or remove the directory\n"
            ),
        ),
    ],
)
def test_a_name_must_be_one_and_free(
    suite: Suite, capsys: pytest.CaptureFixture[str], name: str, what: str
) -> None:
    (suite.directory / "taken").mkdir()

    assert main(["new", name]) == 2

    assert what == capsys.readouterr().err


def test_without_a_suite_there_is_no_scenario(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "first"]) == 2

    told = capsys.readouterr().err
    assert "scenarios/suite.toml: the file is missing" in told
    assert "  hint: `snapshot-harness init -- COMMAND` makes one" in told
    assert os.listdir(here) == []  # noqa: PTH208  names are enough


def test_an_agent_is_found_from_a_directory_behind_links(here: Path) -> None:
    (here / "agent.py").write_text(FAKE_AGENT.read_text())
    (here / "real" / "deep").mkdir(parents=True)
    (here / "link").symlink_to("real/deep")

    assert main(["init", "--directory", "link/suite", "--", "python", "agent.py"]) == 0

    suite = read_suite(here / "real" / "deep" / "suite" / "suite.toml")
    assert suite.file.command == ["{python}", "{suite}/../../../agent.py"]


def test_an_agent_beside_the_current_directory_is_found_too(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "agent.py").write_text(FAKE_AGENT.read_text())
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")

    assert main(["init", "--", "python", "../agent.py", "/bin/sh"]) == 0

    command = read_suite(here / "below" / "scenarios" / "suite.toml").file.command
    assert command == ["{python}", "{suite}/../../agent.py", "/bin/sh"]


def test_a_link_to_the_agent_stays_one(here: Path) -> None:
    (here / "agent").write_text(f"#!{sys.executable}\n{FAKE_AGENT.read_text()}")
    (here / "agent").chmod(0o755)
    (here / "by-link").symlink_to("agent")

    assert main(["init", "--", "./by-link"]) == 0

    command = read_suite(here / "scenarios" / "suite.toml").file.command
    assert command == ["{suite}/../by-link"]


def test_what_is_to_be_typed_next_is_quoted_for_the_shell(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_suite(here / "my scenarios")

    main(["new", "one", "--suite", "my scenarios"])
    main(["init", "--directory", "your scenarios", "--", "/no/such/agent"])

    told = capsys.readouterr()
    assert "next: pytest 'my scenarios' --snapshot-mode=record" in told.out
    assert "then: pytest 'your scenarios' --snapshot-mode=refresh" in told.err


@pytest.mark.parametrize(
    "arguments",
    [["new", "one", "--why", "\udcff"], ["init", "--directory", "s", "--", "agent", "\udcff"]],
)
def test_an_argument_that_is_no_text_is_refused(
    suite: Suite, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2

    assert capsys.readouterr().err == (
        "snapshot-harness: an argument holds bytes that are no UTF-8, and the files are UTF-8\n"
        "  hint: spell it in UTF-8\n"
    )
    assert not (suite.directory / "one").exists()
    assert not (suite.directory.parent / "s").exists()
