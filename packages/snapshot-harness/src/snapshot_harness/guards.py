"""Guards: what can be said about a suite's files without starting an agent."""

from collections.abc import Iterator
from pathlib import Path

from snapshot_harness.exceptions import FixtureError, Problem, ScenarioError
from snapshot_harness.fixtures import SCENARIO, read_fixture
from snapshot_harness.suite import Scenario, Suite


def run_guards(suite: Suite) -> list[Problem]:
    """Return every problem of the suite's directories, each with its remedy."""
    problems = list(_orphans(suite.directory))
    for scenario in suite.scenarios:
        problems.extend(_scenario_problems(scenario))
    return problems


def _orphans(directory: Path) -> Iterator[Problem]:
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith((".", "__")) or not entry.is_dir():
            continue
        if not (entry / SCENARIO).is_file():
            hint = f"add {SCENARIO}, or remove the directory"
            yield Problem(path=entry, what=f"a directory without {SCENARIO}", hint=hint)


def _scenario_problems(scenario: Scenario) -> Iterator[Problem]:
    try:
        file = scenario.file
        read_fixture(scenario.directory, overridden=file.overridden)
    except (ScenarioError, FixtureError) as error:
        yield from error.problems
