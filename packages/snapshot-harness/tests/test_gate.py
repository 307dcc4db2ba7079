from collections.abc import Sequence
from pathlib import Path

import pytest
from kit import add_scenario, make_suite

from snapshot_harness.gate import GateError, Selection, check_gate, endpoint_of, keys_for
from snapshot_harness.suite import Suite, read_suite

KEYED = 'keys = ["A_KEY", "A_URL"]\n[record]\nendpoint = "https://a"\nbase_url_env = "A_URL"\n'


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A_KEY", "A_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    made = make_suite(tmp_path / "scenarios", KEYED)
    for name in ("live", "livelier"):
        add_scenario(made, name, origin="recorded")
    add_scenario(made, "hand", origin="authored")
    add_scenario(made, "elsewhere", origin="recorded", toml='platforms = ["nowhere"]')
    return read_suite(made.path)


def refusal(suite: Suite, names: Sequence[str] = (), *, everything: bool = False) -> str:
    with pytest.raises(GateError) as caught:
        check_gate([suite], Selection(names, everything))
    return str(caught.value)


def test_without_a_name_it_lists_what_it_would_record(suite: Suite) -> None:
    assert refusal(suite) == (
        "recording costs money, so say what: --snapshot-record NAME records one of\n"
        "  live\n  livelier\n"
        "  hint: --snapshot-all records all of them"
    )


def test_a_suite_without_recorded_scenarios_says_so(tmp_path: Path) -> None:
    assert "(no scenario has that origin)" in refusal(make_suite(tmp_path / "scenarios"))


def test_a_name_must_be_exact(suite: Suite) -> None:
    assert refusal(suite, ["liv"]) == (
        "no scenario is called 'liv'\n  hint: an exact name or a glob; there are: live, livelier"
    )


def test_an_authored_scenario_is_never_recorded(suite: Suite) -> None:
    assert refusal(suite, ["hand"]).startswith("'hand' is authored, and never recorded")


def test_a_key_is_needed(suite: Suite) -> None:
    text = refusal(suite, ["live"])

    assert text.startswith(f"{suite.path}: recording calls a live model, and no key is there")
    assert f"Looked for A_KEY or A_URL in the environment and in {suite.directory}/.env" in text


@pytest.mark.parametrize(
    ("names", "everything", "chosen"),
    [
        (["live"], False, "live"),
        (["live*"], False, "live, livelier"),
        (["livelier", "live"], False, "live, livelier"),
        ([], True, "live, livelier"),
    ],
)
def test_with_a_key_it_says_what_it_calls(
    suite: Suite,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    chosen: str,
    *,
    everything: bool,
) -> None:
    monkeypatch.setenv("A_KEY", "k")

    lines = check_gate([suite], Selection(names, everything))

    assert lines == [f"recording {chosen} from https://a"]


def test_a_suite_of_which_nothing_was_chosen_needs_no_key(suite: Suite, tmp_path: Path) -> None:
    other = make_suite(tmp_path / "other")
    add_scenario(other, "mine", origin="recorded")

    lines = check_gate([suite, read_suite(other.path)], Selection(["mine"]))

    assert lines == ["recording mine from the agent's own provider"]


def test_what_the_file_sets_and_the_suite_does_not_name_is_told(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.directory.parent)
    file = suite.directory / ".env"
    told = []
    for text in ("A_KEY=k\nMODEL=m\n", "A_KEY=k\nMODEL=m\nBASE=\nA=a"):
        file.write_text(text)
        told.append(check_gate([suite], Selection(["live"]))[1:])

    unnamed = "which `keys` in suite.toml does not name"
    assert told == [
        [f"scenarios/.env sets MODEL, {unnamed}: it is not passed on"],
        [f"scenarios/.env sets MODEL, BASE, A, {unnamed}: they are not passed on"],
    ]


def test_keys_come_from_the_environment_or_else_from_the_file(suite: Suite) -> None:
    (suite.directory / ".env").write_text("A_KEY=stored\nOTHER=x\nA_URL=\n")

    assert keys_for(suite, {}) == {"A_KEY": "stored"}
    assert keys_for(suite, {"A_KEY": "set", "MORE": "y"}) == {"A_KEY": "set"}


def test_a_file_of_keys_that_is_none_is_refused_without_quoting_it(suite: Suite) -> None:
    (suite.directory / ".env").write_text("my secret\n")

    with pytest.raises(GateError) as caught:
        keys_for(suite)

    assert str(caught.value) == (
        f"{suite.directory}/.env: line 1 is not NAME=VALUE\n  hint: write one NAME=VALUE a line"
    )


def test_a_base_url_stands_for_the_key_and_is_what_is_called(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_URL", "http://localhost:1")

    assert endpoint_of(suite) == "http://localhost:1"
    assert check_gate([suite], Selection(["live"])) == ["recording live from http://localhost:1"]


def test_the_model_is_named(tmp_path: Path) -> None:
    suite = make_suite(tmp_path, '[record]\nendpoint = "e"\nmodel = "m"\n')

    assert endpoint_of(suite) == "e (model m)"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:hunter2@host/v1", "https://host/v1"),
        ("HTTP://token@host:80/v1?key=abc#d", "HTTP://host:80/v1"),
        ("https://host/a@b", "https://host/a@b"),
        ("the local server", "the local server"),
    ],
)
def test_what_is_secret_in_a_url_is_not_told(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, url: str, shown: str
) -> None:
    monkeypatch.setenv("A_URL", url)

    assert check_gate([suite], Selection(["live"])) == [f"recording live from {shown}"]


def test_a_scenario_of_another_platform_is_recorded_there(suite: Suite) -> None:
    assert refusal(suite, ["elsewhere"]) == "'elsewhere' is for nowhere\n  hint: record it there"


def test_a_scenario_that_can_not_be_read_is_not_recorded(suite: Suite) -> None:
    (suite.directory / "live" / "scenario.toml").write_text("why = 1\n")

    told = refusal(read_suite(suite.path), ["live"])

    assert told == "'live' can't be read\n  hint: run it, to see why"
