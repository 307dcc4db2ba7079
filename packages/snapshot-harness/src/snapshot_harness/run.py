"""One scenario in replay or refresh: run it, judge it, and write only where asked to."""

import os
import shlex
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from snapshot_harness.boot import Run
from snapshot_harness.causes import Cause
from snapshot_harness.compare import compare
from snapshot_harness.credentials import redact
from snapshot_harness.exceptions import HarnessError, ImpureStdoutError, NestingError, Problem
from snapshot_harness.fixtures import roll_forward
from snapshot_harness.headers import Told
from snapshot_harness.kept import forget, keep
from snapshot_harness.modes import Mode
from snapshot_harness.normalize import Normalized
from snapshot_harness.prepare import Prepared, prepare
from snapshot_harness.report import Report
from snapshot_harness.run_report import shown_path
from snapshot_harness.suite import Scenario, Suite
from snapshot_harness.writing import files_of, refusals, stale_logs, write


@dataclass(frozen=True, slots=True)
class Usage:
    """What a recording came to."""

    calls: int
    tokens: int

    def __str__(self) -> str:
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        return f"{calls}, {self.tokens} tokens"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A scenario's report, what its sessions were told, and what recording it used."""

    report: Report
    headers: list[Told] = field(default_factory=list)
    usage: Usage | None = None


def run_scenario(suite: Suite, scenario: Scenario, mode: Mode) -> Outcome:
    """Run a scenario in replay or refresh, and say what it came to."""
    started = time.monotonic()
    work = _refresh if mode is Mode.REFRESH else _replay
    try:
        outcome = work(suite, scenario)
    except (HarnessError, OSError, RecursionError) as error:
        report = failed(scenario, mode, problems_of(error))
        outcome = Outcome(report=replace(report, outcome="error"))
    return finish(outcome, os.environ, started)


def failed(scenario: Scenario, mode: Mode, problems: Sequence[str]) -> Report:
    """Return the report of a run with problems, or of one not yet found to have passed."""
    return Report(
        scenario=scenario.name,
        directory=shown_path(scenario.directory),
        mode=mode.value,
        outcome="failed",
        problems=problems,
    )


def problems_of(error: Exception) -> list[str]:
    """Return what an error tells, problem by problem where it holds several."""
    if isinstance(error, OSError):
        return [_own_failure(error)]
    if isinstance(error, RecursionError):
        return [str(NestingError())]
    problems: Sequence[Problem] = getattr(error, "problems", ())
    return [str(replace(one, path=shown_path(one.path))) for one in problems] or [str(error)]


def _own_failure(error: OSError) -> str:
    """Tell of what the system refused the harness, and in the middle of what."""
    own = Path(__file__).parent
    frames = traceback.extract_tb(error.__traceback__)
    names = [frame.name for frame in frames if Path(frame.filename).is_relative_to(own)]
    return (
        f"the harness failed, not the agent: {error}\n"
        f"  It was at {', '.join(names[-2:])}.\n"
        "  hint: see to the file, the disk or the permissions that it names, and run again"
    )


def finish(outcome: Outcome, environ: Mapping[str, str], started: float) -> Outcome:
    """Return an outcome with its time, and without anything that looks like a credential."""
    report = outcome.report
    clean = replace(
        report,
        seconds=time.monotonic() - started,
        problems=[redact(text, environ) for text in report.problems],
        notes=[redact(text, environ) for text in report.notes],
        stderr_tail=redact(report.stderr_tail, environ),
        causes=[
            replace(
                cause,
                expected=redact(cause.expected, environ),
                actual=redact(cause.actual, environ),
                records=(redact(cause.records[0], environ), redact(cause.records[1], environ)),
            )
            for cause in report.causes
        ],
    )
    return replace(outcome, report=clean)


def _replay(suite: Suite, scenario: Scenario) -> Outcome:
    prepared = prepare(suite, scenario, transcript=True)
    run, problems = prepared.replay()
    report = _report(run, scenario, Mode.REPLAY, problems)
    forget(suite.directory, scenario.name)
    if run.failure is not None:
        causes = prepared.contradictions() or _first_cause(prepared, run)
        return Outcome(report=replace(report, causes=causes[:1]))
    actual = prepared.actual(run)
    headers = prepared.told(run, actual)
    causes = compare(prepared.expected(), actual)
    if causes or problems:
        causes = [*prepared.contradictions(), *causes]
    if causes:
        report = _keep(replace(report, causes=causes), prepared, run, actual)
    elif not problems:
        report = replace(report, outcome="passed", stderr_tail="")
    return Outcome(report=report, headers=headers)


def _refresh(suite: Suite, scenario: Scenario) -> Outcome:
    directory = scenario.directory
    roll_forward(directory)
    prepared = prepare(suite, scenario, transcript=False)
    run, problems = prepared.replay()
    report = _report(run, scenario, Mode.REFRESH, problems)
    if problems:
        return Outcome(report=replace(report, causes=prepared.contradictions()[:1]))
    actual = prepared.actual(run)
    headers = prepared.told(run, actual)
    with_logs = prepared.with_logs
    new = files_of(actual, scenario.file, headers=headers, with_logs=with_logs)
    problems = [*refusals(new, run.roots, os.environ), *prepared.unlogged(run, actual)]
    if problems:
        return Outcome(report=replace(report, problems=problems))
    written = write(directory, new, with_logs=with_logs)
    forget(suite.directory, scenario.name)
    report = replace(report, outcome="passed", stderr_tail="", written=written)
    return Outcome(report=report, headers=headers)


def _keep(report: Report, prepared: Prepared, run: Run, actual: Normalized) -> Report:
    """Keep the files of a run that differs, and say how to take them over, if one may."""
    scenario, with_logs = prepared.scenario, prepared.with_logs
    headers = prepared.told(run, actual)
    new = files_of(actual, scenario.file, headers=headers, with_logs=with_logs)
    barred = [
        *report.problems,
        *refusals(new, run.roots, os.environ),
        *prepared.unlogged(run, actual),
    ]
    suite = prepared.suite.directory
    try:
        kept = keep(
            suite,
            scenario.name,
            files=new,
            stale=stale_logs(scenario.directory, new) if with_logs else [],
            causes=report.causes,
            refusals=barred,
        )
    except OSError as error:
        # A checkout that is only read, or a full disk: what differs is told all the same.
        lost = (
            f"the actual files could not be kept: {error}\n"
            "  hint: let the suite's directory be written to, and see that the disk has room"
        )
        return replace(report, notes=[*report.notes, lost])
    typed = shlex.quote(str(shown_path(suite)))
    accept = f"snapshot-harness review {typed} --accept {scenario.name}"
    return replace(report, kept=shown_path(kept), accept="" if barred else accept)


def _report(run: Run, scenario: Scenario, mode: Mode, problems: Sequence[str]) -> Report:
    report = failed(scenario, mode, problems)
    return replace(report, stderr_tail=run.stderr_tail, notes=run.notes)


def _first_cause(prepared: Prepared, run: Run) -> list[Cause]:
    """Return the first difference of a run that came to no end, if there is enough of it."""
    unseen = not run.transcript or (prepared.with_logs and not run.logs)
    if unseen or isinstance(run.failure, ImpureStdoutError):
        return []
    try:
        causes = compare(prepared.expected(), prepared.actual(run))
    except HarnessError:
        return []  # the failure itself is told
    return [replace(cause, folded=0) for cause in causes[:1]]
