"""Pytest plugin: collects scenarios from suite.toml.

Everything beyond pytest is imported where it is used: this module is loaded by
every pytest run of an environment that has the package.
"""

import contextlib
import os
import signal
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from snapshot_harness.run_report import RunReport, platform_lines, suites_in

if TYPE_CHECKING:
    from snapshot_harness.exceptions import Problem
    from snapshot_harness.gate import Selection
    from snapshot_harness.header_desk import HeaderDesk, HeaderSender
    from snapshot_harness.modes import Mode
    from snapshot_harness.run import Outcome
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
    group.addoption(
        "--snapshot-record",
        action="append",
        default=[],
        metavar="NAME",
        help="record this scenario: an exact name or a glob (repeatable)",
    )
    group.addoption("--snapshot-all", action="store_true", help="record all recorded scenarios")
    group.addoption(
        "--snapshot-report", type=Path, metavar="FILE", help="write what came of it as JSON"
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
    plugin = Worker if hasattr(config, "workerinput") else Controller
    config.pluginmanager.register(plugin(config), "snapshot-run")
    if hasattr(config, "workerinput"):
        # xdist's workers ignore Ctrl-C; ours must kill their agents at once.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _selection(config: pytest.Config) -> "Selection":
    from snapshot_harness.gate import Selection  # noqa: PLC0415

    return Selection(config.getoption("snapshot_record"), config.getoption("snapshot_all"))


def _say(config: pytest.Config, text: str) -> None:
    """Write a line of progress to the terminal, past pytest's capturing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or hasattr(config, "workerinput"):
        return
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        reporter.ensure_newline()
        reporter.write_line(text)
        reporter.flush()


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
        takes = _selection(self.config).takes if mode is Mode.RECORD else None
        for scenario in suite.scenarios:
            if scenario.runs_here and (takes is None or takes(scenario)):
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

            return record_scenario(self.suite, self.scenario, say=partial(_say, self.config))
        from snapshot_harness.run import run_scenario  # noqa: PLC0415

        return run_scenario(self.suite, self.scenario, self.mode)

    def facts(self, sender: "HeaderSender") -> dict[str, Any] | None:
        """Return what the controlling process needs to know, as JSON; None if it did not run."""
        from snapshot_harness.report import annotation, as_json, verdict_line  # noqa: PLC0415

        if self.outcome is None:
            return None
        report, headers = self.outcome.report, self.outcome.headers
        return {
            "suite": str(self.path),
            "class": self.suite.header_class_of(self.scenario.file) if headers else "",
            "headers": sender.pack(headers),
            "report": as_json(report),
            "line": verdict_line(report),
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

        problems = run_guards(self.suite)
        self.problems = problems
        if problems:
            raise ScenarioFailure("\n".join(str(problem) for problem in problems))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the suite is defined."""
        return self.path, 0, self.name


class Worker:
    """The side that runs scenarios: it hands what they came to on with their reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._sender: HeaderSender | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach what the controlling process needs: user properties would land in JUnit."""
        report = yield
        if isinstance(item, ScenarioItem) and call.when == "call":
            from snapshot_harness.header_desk import HeaderSender  # noqa: PLC0415

            self._sender = self._sender or HeaderSender()
            report.snapshot = item.facts(self._sender)  # type: ignore[attr-defined]  # ours
        elif isinstance(item, GuardsItem) and call.when == "call":
            report.snapshot = item.facts()  # type: ignore[attr-defined]  # ours
        return report


class Controller(Worker):
    """The side that reports: it judges headers once per class, at the end of the whole run."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._desk: HeaderDesk | None = None
        self._told = RunReport(config.getoption("snapshot_mode"))

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Count what is not collected here, lest it be forgotten."""
        return platform_lines(suites_in(config.args, config.invocation_params.dir))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a scenario came to."""
        facts = getattr(report, "snapshot", None)
        if facts is None:
            return
        self._told.add(facts)
        if "headers" not in facts:
            return
        from snapshot_harness.header_desk import HeaderDesk  # noqa: PLC0415

        self._desk = self._desk or HeaderDesk()
        self._desk.add(
            facts["headers"],
            node=report.nodeid.rpartition("::")[0],
            suite=facts["suite"],
            header_class=facts["class"],
            scenario=facts["report"]["scenario"],
        )

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Say what record is about to call; refuse before anything is called.

        Raises:
            pytest.UsageError: Nothing was chosen, or the key is missing.
        """
        if session.config.getoption("snapshot_mode") != "record":
            return
        from snapshot_harness.exceptions import HarnessError  # noqa: PLC0415
        from snapshot_harness.gate import check_gate  # noqa: PLC0415
        from snapshot_harness.suite import read_suite  # noqa: PLC0415

        config = session.config
        try:
            suites = [
                read_suite(path) for path in suites_in(config.args, config.invocation_params.dir)
            ]
            lines = check_gate(suites, _selection(config))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None
        for line in lines:
            _say(config, line)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Judge the headers when all scenarios are done, also where the run stops early."""
        try:
            result = yield
        except pytest.Session.Failed:
            self._judge(session)
            raise
        self._judge(session)
        return result

    def _judge(self, session: pytest.Session) -> None:
        judgements = self._desk.judge() if self._desk is not None else []
        session.testscollected += len(judgements)
        for one in judgements:
            node = f"{one.suite}::header[{one.header_class}]"
            self._told.headers[node] = list(one.problems)
            self._tell(node, "\n".join(one.problems))
        file = self._config.getoption("snapshot_report")
        if file is not None:
            self._told.write(file)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write one line of verdict per scenario, and annotations on GitHub Actions."""
        if self._told.lines and self._config.get_verbosity() >= 0:
            terminalreporter.section("snapshots")
            for line in self._told.lines:
                terminalreporter.write_line(line)
        if os.environ.get("GITHUB_ACTIONS") == "true":
            for line in self._told.annotations:
                terminalreporter.write_line(line)

    def _tell(self, node: str, problems: str) -> None:
        """Report an item that was never collected, as if it had run."""
        hook = self._config.hook
        location = (node.partition("::")[0], 0, node.rpartition("::")[2])
        hook.pytest_runtest_logstart(nodeid=node, location=location)
        for when in ("setup", "call", "teardown"):
            failed = when == "call" and bool(problems)
            report = pytest.TestReport(
                nodeid=node,
                location=location,
                keywords={},
                outcome="failed" if failed else "passed",
                longrepr=problems if failed else None,
                when=when,
            )
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=node, location=location)
