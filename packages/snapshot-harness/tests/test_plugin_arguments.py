"""Places that pytest is given: each names a scenario, or is told to name none."""

import pytest
from kit import add_scenario, make_suite, refreshed, say

from snapshot_harness.run_report import node_of
from snapshot_harness.suite import Suite

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:randomly", "-p", "no:cacheprovider")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    """Two scenarios that pass."""
    made = make_suite(pytester.path / "scenarios")
    for name, toml in (("one", "pins_header = true"), ("two", "")):
        refreshed(made, add_scenario(made, name, turns=[[say("Hi")]], toml=toml))
    return made


@pytest.mark.parametrize("place", ["workspace", "workspace/test_it.py", "input.json"])
def test_a_place_in_a_scenarios_directory_names_it_too(
    pytester: pytest.Pytester, suite: Suite, place: str
) -> None:
    workspace = suite.directory / "two" / "workspace"
    workspace.mkdir()
    (workspace / "test_it.py").write_text("def test_it(): assert False\n")

    pytester.runpytest(*OPTIONS, f"scenarios/two/{place}").assert_outcomes(passed=2)


@pytest.mark.parametrize("place", ["stray", "stray/deeper"])
@pytest.mark.parametrize("more", [[], ["scenarios/two", "-n", "2"]])
def test_a_directory_that_is_no_scenario_is_a_usage_error(
    pytester: pytest.Pytester, suite: Suite, place: str, more: list[str]
) -> None:
    (suite.directory / "stray" / "deeper").mkdir(parents=True)

    result = pytester.runpytest(*OPTIONS, f"scenarios/{place}", *more)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: scenarios/{place}: scenarios/stray is a directory of a suite without *.toml",
            "  hint: name a scenario's directory, or scenarios/suite.toml itself",
        ]
    )


def test_a_suite_in_a_scenarios_workspace_is_its_own(
    pytester: pytest.Pytester, suite: Suite
) -> None:
    inner = suite.directory / "one" / "workspace" / "scenarios"
    add_scenario(make_suite(inner), "three", turns=[[say("Hi")]])
    start = pytester.path / "scenarios" / "one" / "workspace"

    assert node_of("scenarios", start) == "scenarios"
    assert node_of("scenarios/suite.toml", start) == "scenarios/suite.toml"
    assert node_of("scenarios/three", start) == f"{inner}/suite.toml::three"
