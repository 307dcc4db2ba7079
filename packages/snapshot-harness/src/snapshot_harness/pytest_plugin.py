"""Pytest plugin: collects scenarios from suite.toml.

Everything beyond pytest is imported where it is used: this module is loaded by
every pytest run of an environment that has the package.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from snapshot_harness.modes import Mode
    from snapshot_harness.suite import Scenario, Suite

SUITE = "suite.toml"
MODES = ("replay", "refresh", "record")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a snapshot run."""
    group = parser.getgroup("snapshot", "snapshot scenarios")
    group.addoption(
        "--snapshot-mode",
        choices=MODES,
        default="replay",
        help="replay compares (default); refresh rewrites expectations; record calls a live model",
    )
    group.addoption(
        "--snapshot-on-ci",
        action="store_true",
        help="allow refresh and record although CI is set",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to rewrite fixtures on CI, where nobody would review them.

    Raises:
        pytest.UsageError: The mode writes, and CI is set.
    """
    mode = config.getoption("snapshot_mode")
    on_ci = os.environ.get("CI") in {"1", "true"}
    if mode != "replay" and on_ci and not config.getoption("snapshot_on_ci"):
        raise pytest.UsageError(
            f"--snapshot-mode={mode} writes fixtures, and CI only replays\n"
            "  hint: --snapshot-on-ci allows it, on purpose and in plain sight"
        )
    config.pluginmanager.register(HeaderDesk(config), "snapshot-headers")
    if hasattr(config, "workerinput"):
        # xdist's workers ignore Ctrl-C; ours must kill their agents at once.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:  # noqa: ARG001  the hook's signature
    """Let the watchdog end."""
    import sys  # noqa: PLC0415  see the module's docstring

    watchdog = sys.modules.get("snapshot_harness.watchdog")
    if watchdog is not None:
        watchdog.WATCHDOG.close()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep pytest out of a suite's directories: a workspace may hold tests of its own."""
    if collection_path.is_dir() and (collection_path.parent / SUITE).is_file():
        return True
    return None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "SuiteCollector | None":
    """Collect suite.toml files."""
    if file_path.name != SUITE:
        return None
    return SuiteCollector.from_parent(parent, path=file_path)


class SuiteCollector(pytest.File):
    """A suite: its scenarios and its guards."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item per scenario, and one for the guards."""
        from snapshot_harness.exceptions import ScenarioError  # noqa: PLC0415
        from snapshot_harness.modes import Mode  # noqa: PLC0415
        from snapshot_harness.suite import read_suite  # noqa: PLC0415

        try:
            suite = read_suite(self.path)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from None
        mode = Mode(self.config.getoption("snapshot_mode"))
        for scenario in suite.scenarios:
            if scenario.runs_here:
                yield ScenarioItem.from_parent(
                    self, name=scenario.name, suite=suite, scenario=scenario, mode=mode
                )
        if mode is Mode.REPLAY:
            yield GuardsItem.from_parent(self, name="[guards]", suite=suite)


class ScenarioFailure(Exception):  # noqa: N818  a test failure, not an error
    """Its text is the whole report."""


class SnapshotItem(pytest.Item):
    """An item whose failure is a text of ours."""

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: Any = None,  # noqa: ANN401  pytest's
    ) -> Any:  # noqa: ANN401  pytest's
        """Return the report alone: a traceback through the harness helps nobody."""
        if isinstance(excinfo.value, ScenarioFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class ScenarioItem(SnapshotItem):
    """One scenario."""

    def __init__(self, *, suite: "Suite", scenario: "Scenario", mode: "Mode", **rest: Any) -> None:  # noqa: ANN401  pytest's
        super().__init__(**rest)
        self.suite = suite
        self.scenario = scenario
        self.mode = mode
        self.told: list[Any] = []

    def runtest(self) -> None:
        """Run it.

        Raises:
            ScenarioFailure: It did not pass.
        """
        from snapshot_harness.report import failure_text  # noqa: PLC0415
        from snapshot_harness.run import run_scenario  # noqa: PLC0415

        outcome = run_scenario(self.suite, self.scenario, self.mode)
        self.told = outcome.headers
        if outcome.report.outcome != "passed":
            raise ScenarioFailure(failure_text(outcome.report))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the scenario is defined."""
        return self.scenario.directory / "scenario.toml", 0, self.name


class GuardsItem(SnapshotItem):
    """What can be said about a suite's files without an agent."""

    def __init__(self, *, suite: "Suite", **rest: Any) -> None:  # noqa: ANN401  pytest's
        super().__init__(**rest)
        self.suite = suite

    def runtest(self) -> None:
        """Look at every file.

        Raises:
            ScenarioFailure: With every problem.
        """
        from snapshot_harness.guards import run_guards  # noqa: PLC0415

        problems = run_guards(self.suite)
        if problems:
            raise ScenarioFailure("\n".join(str(problem) for problem in problems))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the suite is defined."""
        return self.path, 0, self.name


class HeaderDesk:
    """Judges what sessions were told, once per class, at the end of the whole run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
