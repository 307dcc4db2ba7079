"""What a run tells: reports with facts attached, headers judged at the end, a summary."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from snapshot_harness.leftovers import own_children
from snapshot_harness.pytest_plugin.items import (
    GuardsItem,
    ScenarioItem,
    say,
    selection_of,
    shard_of,
)
from snapshot_harness.run_report import (
    SUITE,
    RunReport,
    suite_lines,
    suites_below,
    unknown_lines,
)

if TYPE_CHECKING:
    from snapshot_harness.header_desk import HeaderDesk, HeaderSender


class Worker:
    """The side that runs scenarios: it hands what they came to on with their reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._sender: HeaderSender | None = None

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """End the run as Ctrl-C does."""
        signal.default_int_handler(number, frame)

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
        self._told = RunReport(
            config.getoption("snapshot_mode"), config.getoption("snapshot_shard")
        )
        self._started = time.monotonic()
        self._unwritten = ""

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """End the run as Ctrl-C does, which reaches the workers too."""
        for pid in own_children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        super().interrupt(number, frame)

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Count what is not collected here, lest it be forgotten."""
        return suite_lines(self._suites, shard_of(config))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a scenario came to."""
        facts = getattr(report, "snapshot", None)
        if facts is None:
            return
        self._told.add(facts)
        if "headers" not in facts:
            return
        if facts["report"]["mode"] == "record" and self._has_workers:
            say(self._config, facts["line"])
        from snapshot_harness.header_desk import HeaderDesk  # noqa: PLC0415

        self._desk = self._desk or HeaderDesk()
        self._desk.add(
            facts["headers"],
            node=report.nodeid.rpartition("::")[0],
            suite=facts["suite"],
            header_class=facts["class"],
            scenario=facts["report"]["scenario"],
        )

    @cached_property
    def _suites(self) -> list[Path]:
        config = self._config
        return suites_below(
            config.args, config.invocation_params.dir, config.getini("norecursedirs")
        )

    @property
    def _has_workers(self) -> bool:
        return self._config.pluginmanager.hasplugin("dsession")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Show that a worker records: it has no terminal of its own."""
        path, _, name = nodeid.rpartition("::")
        if self._told.mode == "record" and self._has_workers and Path(path).name == SUITE:
            say(self._config, f"{name}: recording")

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Say what record is about to call; refuse before anything is called.

        Raises:
            pytest.UsageError: Nothing was chosen, or the key is missing; or the report
                can't be written.
        """
        file = self._config.getoption("snapshot_report")
        if file is not None:
            try:
                # Empty until the end: a run that is killed leaves no older one's report.
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"")
            except OSError as error:
                raise pytest.UsageError(_unwritten(file, error)) from None
        if session.config.getoption("snapshot_mode") != "record":
            return
        from snapshot_harness.exceptions import HarnessError  # noqa: PLC0415
        from snapshot_harness.gate import check_gate  # noqa: PLC0415
        from snapshot_harness.suite import read_suite  # noqa: PLC0415

        config = session.config
        try:
            suites = [read_suite(path) for path in self._suites]
            lines = check_gate(suites, selection_of(config))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None
        for line in lines:
            say(config, line)

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
            if one.problems:
                from snapshot_harness.report import text_annotation  # noqa: PLC0415

                title = f"snapshot header[{one.header_class}]"
                text = text_annotation(one.file, 1, title, "\n".join(one.problems))
                self._told.annotations.append(text)
            self._tell(node, "\n".join(one.problems))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take in why a suite could not be collected."""
        path = Path(report.nodeid)
        if not report.failed or path.name != SUITE:
            return
        from snapshot_harness.report import text_annotation  # noqa: PLC0415

        text = str(report.longrepr)
        line = re.search(rf"{re.escape(SUITE)}:(\d+): ", text)
        number = int(line[1]) if line is not None else 1
        self._told.errors.append(text)
        self._told.annotations.append(text_annotation(path, number, "snapshot suite", text))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, also of a run that came to no end; say so where it can't be."""
        file = self._config.getoption("snapshot_report")
        if file is None:
            return
        try:
            self._told.write(file)
        except OSError as error:
            self._unwritten = _unwritten(file, error)
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Write one line of verdict per scenario, and annotations on GitHub Actions."""
        if self._told.lines and self._config.get_verbosity() >= 0:
            terminalreporter.section("snapshots")
            for line in self._told.lines:
                terminalreporter.write_line(line)
        keyword = self._config.getoption("keyword")
        if keyword and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            for line in unknown_lines(keyword, self._suites):
                terminalreporter.write_line(line)
        if self._unwritten:
            terminalreporter.write_line(self._unwritten, red=True)
        usage = self._told.usage_line(time.monotonic() - self._started)
        if usage:
            terminalreporter.write_line(usage)
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


def _unwritten(file: Path, error: OSError) -> str:
    what = f"--snapshot-report: {file} can't be written: {error.strerror}"
    return f"{what}\n  hint: name a file in a directory that you may write to"
