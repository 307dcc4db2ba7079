"""What is collected from a suite.toml: an item per scenario, and one for the guards."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from snapshot_harness.run_report import shown_path

if TYPE_CHECKING:
    from snapshot_harness.exceptions import Problem
    from snapshot_harness.gate import Selection
    from snapshot_harness.header_desk import HeaderSender
    from snapshot_harness.modes import Mode
    from snapshot_harness.run import Outcome
    from snapshot_harness.shard import Shard
    from snapshot_harness.suite import Scenario, Suite


class SuiteCollector(pytest.File):
    """A suite: its scenarios and its guards."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item per scenario of the shard, and one for the guards."""
        if sys.platform == "win32":
            raise self.CollectError("snapshot scenarios run on Linux and macOS, not on Windows")
        from snapshot_harness.exceptions import ScenarioError  # noqa: PLC0415
        from snapshot_harness.modes import Mode  # noqa: PLC0415
        from snapshot_harness.suite import read_suite  # noqa: PLC0415

        try:
            suite = read_suite(self.path)
        except ScenarioError as error:
            raise self.CollectError(_clean(str(error))) from None
        mode = Mode(self.config.getoption("snapshot_mode"))
        takes = selection_of(self.config).takes if mode is Mode.RECORD else None
        shard = shard_of(self.config)
        for scenario in shard.of(suite.scenarios):
            if scenario.runs_here and (takes is None or takes(scenario)):
                yield ScenarioItem.from_parent(
                    self, name=scenario.name, suite=suite, scenario=scenario, mode=mode
                )
        if mode is Mode.REPLAY and shard.has_guards:
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
        self.outcome: Outcome | None = None

    def runtest(self) -> None:
        """Run it.

        Raises:
            ScenarioFailure: It did not pass.
        """
        from snapshot_harness.report import failure_text  # noqa: PLC0415

        self.outcome = self._run()
        if self.outcome.report.outcome != "passed":
            raise ScenarioFailure(failure_text(self.outcome.report))

    def _run(self) -> "Outcome":
        from snapshot_harness.modes import Mode  # noqa: PLC0415

        if self.mode is Mode.RECORD:
            from snapshot_harness.record import record_scenario  # noqa: PLC0415

            return record_scenario(self.suite, self.scenario, say=partial(say, self.config))
        from snapshot_harness.run import run_scenario  # noqa: PLC0415

        return run_scenario(self.suite, self.scenario, self.mode)

    def facts(self, sender: "HeaderSender") -> dict[str, Any] | None:
        """Return what the controlling process needs to know, as JSON; None if it did not run."""
        from snapshot_harness.report import annotation, as_json, verdict_line  # noqa: PLC0415

        if self.outcome is None:
            return None
        report, headers, usage = self.outcome.report, self.outcome.headers, self.outcome.usage
        return {
            "suite": str(self.path),
            "class": self.suite.header_class_of(self.scenario.file) if headers else "",
            "headers": sender.pack(headers),
            "report": as_json(report),
            "line": verdict_line(report) + (f"; {usage}" if usage else ""),
            "usage": [usage.calls, usage.tokens] if usage else None,
            "annotations": [] if report.outcome == "passed" else [annotation(report)],
        }

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the scenario is defined."""
        return self.scenario.directory / "scenario.toml", 0, self.name


class GuardsItem(SnapshotItem):
    """What can be said about a suite's files without an agent."""

    def __init__(self, *, suite: "Suite", **rest: Any) -> None:  # noqa: ANN401  pytest's
        super().__init__(**rest)
        self.suite = suite
        self.problems: list[Problem] = []

    def facts(self) -> dict[str, Any]:
        """Return what the controlling process needs to know, as JSON."""
        from snapshot_harness.report import problem_annotation  # noqa: PLC0415

        return {
            "guards": [str(problem) for problem in self.problems],
            "annotations": [problem_annotation(problem) for problem in self.problems],
        }

    def runtest(self) -> None:
        """Look at every file.

        Raises:
            ScenarioFailure: With every problem.
        """
        from snapshot_harness.guards import run_guards  # noqa: PLC0415

        problems = [
            replace(one, path=shown_path(one.path), what=_clean(one.what), hint=_clean(one.hint))
            for one in run_guards(self.suite)
        ]
        self.problems = problems
        if problems:
            raise ScenarioFailure("\n".join(str(problem) for problem in problems))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the suite is defined."""
        return self.path, 0, self.name


def _clean(text: str) -> str:
    """Return a text without credentials: it may quote what stands in a file."""
    from snapshot_harness.credentials import redact  # noqa: PLC0415

    return redact(text, os.environ)


def selection_of(config: pytest.Config) -> "Selection":
    """Return which scenarios the command line asks to record."""
    from snapshot_harness.gate import Selection  # noqa: PLC0415

    return Selection(config.getoption("snapshot_record"), config.getoption("snapshot_all"))


def shard_of(config: pytest.Config) -> "Shard":
    """Return which part of each suite is to run: the whole is the first of one."""
    from snapshot_harness.shard import read_shard  # noqa: PLC0415

    return read_shard(config.getoption("snapshot_shard") or "1/1")


def say(config: pytest.Config, text: str) -> None:
    """Write a line of progress to the terminal, past pytest's capturing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or hasattr(config, "workerinput"):
        return
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        reporter.ensure_newline()
        writer = config.get_terminal_writer()
        if writer.width_of_current_line:  # with -q there are only dots, of which it knows nothing
            writer.line()
        reporter.write_line(text)
        reporter.flush()
