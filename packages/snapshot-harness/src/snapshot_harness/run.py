"""One scenario in replay or refresh: run it, judge it, and write only where asked to."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llm_replay.config import ReplayConfig
from llm_replay.exceptions import ReplayError
from llm_replay.script import SessionScript, load_session_scripts
from snapshot_harness.boot import Run, run_agent
from snapshot_harness.compare import compare
from snapshot_harness.environment import ScriptFiles
from snapshot_harness.exceptions import FixtureError, HarnessError, Problem
from snapshot_harness.fixtures import (
    INPUT,
    OVERRIDE,
    Fixture,
    find_logs,
    read_fixture,
    roll_forward,
)
from snapshot_harness.headers import Told, collect
from snapshot_harness.kept import forget, keep
from snapshot_harness.modes import Mode
from snapshot_harness.normalize import Normalized, normalize_fixture, normalize_run
from snapshot_harness.report import Report
from snapshot_harness.served import unlogged
from snapshot_harness.steps import Script, read_script
from snapshot_harness.suite import Scenario, Suite, rules_of
from snapshot_harness.verdict import judge
from snapshot_harness.writing import files_of, refusals, stale_logs, write


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A scenario's report, and what its sessions were told."""

    report: Report
    headers: list[Told] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A scenario's files, read."""

    suite: Suite
    scenario: Scenario
    steps: Script
    fixture: Fixture
    files: ScriptFiles
    scripts: Sequence[SessionScript]

    @property
    def compares_log(self) -> bool:
        """Whether the logs are compared, and written."""
        if self.suite.file.log == "none":
            return False
        said = self.scenario.file.compares_log
        return self.steps.prompts if said is None else said

    def expected(self) -> Normalized:
        """Return both surfaces of the fixture."""
        return normalize_fixture(
            self.fixture.logs if self.compares_log else [],
            self.fixture.transcript,
            rules=rules_of(self.suite),
            overridden=self.fixture.overridden,
        )

    def actual(self, run: Run) -> Normalized:
        """Return both surfaces of a run."""
        return normalize_run(
            run.logs if self.compares_log else [],
            run.transcript,
            roots=run.roots,
            rules=rules_of(self.suite),
            overridden=self.fixture.overridden,
        )

    def told(self, run: Run, actual: Normalized) -> list[Told]:
        """Return what a run's sessions were told, also where their logs are not compared."""
        if self.compares_log:
            return collect(actual.headers)
        rules = rules_of(self.suite)
        return collect(normalize_run(run.logs, [], roots=run.roots, rules=rules).headers)


def run_scenario(suite: Suite, scenario: Scenario, mode: Mode) -> Outcome:
    """Run a scenario in replay or refresh, and say what it came to."""
    started = time.monotonic()
    work = _refresh if mode is Mode.REFRESH else _replay
    try:
        outcome = work(suite, scenario)
    except HarnessError as error:
        report = failed(scenario, mode, [str(error)])
        outcome = Outcome(report=replace(report, outcome="error"))
    seconds = time.monotonic() - started
    return replace(outcome, report=replace(outcome.report, seconds=seconds))


def prepare(suite: Suite, scenario: Scenario, *, transcript: bool) -> Prepared:
    """Read a scenario's files; the transcript only where it is compared.

    Raises:
        HarnessError: With every problem of the file that has some.
    """
    overridden = scenario.file.overridden
    directory = scenario.directory
    fixture = read_fixture(directory, overridden=overridden, transcript=transcript)
    primary, *children = find_logs(directory)
    files = ScriptFiles(primary, children, directory / OVERRIDE if overridden else None)
    return Prepared(
        suite=suite,
        scenario=scenario,
        steps=read_script(directory / INPUT),
        fixture=fixture,
        files=files,
        scripts=load_scripts(files),
    )


def load_scripts(files: ScriptFiles) -> list[SessionScript]:
    """Derive the scripts as replay will.

    Raises:
        FixtureError: No script can be derived.
    """
    config = ReplayConfig(
        file=files.primary, child_files=files.children, override_file=files.override
    )
    try:
        return load_session_scripts(config)
    except ReplayError as error:
        problem = Problem(path=files.primary, what=f"no script can be derived\n{error}")
        raise FixtureError(problems=[problem]) from None


def replay_once(prepared: Prepared) -> tuple[Run, list[str]]:
    """Run the agent over the script; return what it left and what is wrong with the run."""
    run = run_agent(
        prepared.suite,
        prepared.scenario,
        prepared.steps,
        files=prepared.files,
        scripts=prepared.scripts,
    )
    if run.failure is not None:
        # A fault of the fixture explains what the agent did next; what it left unasked does not.
        return run, [*run.told.faults, str(run.failure), *run.findings]
    required = prepared.suite.file.verdict == "required"
    return run, [*judge(run.told, prepared.scripts, required=required), *run.findings]


def failed(scenario: Scenario, mode: Mode, problems: Sequence[str]) -> Report:
    """Return the report of a run with problems, or of one not yet found to have passed."""
    return Report(
        scenario=scenario.name,
        directory=_shown(scenario.directory),
        mode=mode.value,
        outcome="failed",
        problems=problems,
    )


def _report(run: Run, scenario: Scenario, mode: Mode, problems: Sequence[str]) -> Report:
    # An agent's error carries the tail itself.
    tail = "" if run.failure is not None else run.stderr_tail
    return replace(failed(scenario, mode, problems), stderr_tail=tail, notes=run.notes)


def _replay(suite: Suite, scenario: Scenario) -> Outcome:
    prepared = prepare(suite, scenario, transcript=True)
    run, problems = replay_once(prepared)
    report = _report(run, scenario, Mode.REPLAY, problems)
    if run.failure is not None:
        return Outcome(report=report)
    actual = prepared.actual(run)
    headers = prepared.told(run, actual)
    causes = compare(prepared.expected(), actual)
    forget(suite.directory, scenario.name)
    if not causes and not problems:
        return Outcome(report=replace(report, outcome="passed", stderr_tail=""), headers=headers)
    if causes:
        report = _keep(replace(report, causes=causes), prepared, run, actual)
    return Outcome(report=report, headers=headers)


def _keep(report: Report, prepared: Prepared, run: Run, actual: Normalized) -> Report:
    """Keep the files of a run that differs, and say how to take them over, if one may."""
    scenario = prepared.scenario
    with_logs = prepared.compares_log
    headers = prepared.told(run, actual)
    new = files_of(actual, scenario.file, headers=headers, with_logs=with_logs)
    barred = [*report.problems, *refusals(new, run.roots), *_unlogged(prepared, run, actual)]
    suite = prepared.suite.directory
    kept = keep(
        suite,
        scenario.name,
        files=new,
        stale=stale_logs(scenario.directory, new) if with_logs else [],
        causes=report.causes,
        refusals=barred,
    )
    accept = f"snapshot-harness review {_shown(suite)} --accept {scenario.name}"
    return replace(report, kept=_shown(kept), accept="" if barred else accept)


def _unlogged(prepared: Prepared, run: Run, actual: Normalized) -> list[str]:
    if not prepared.compares_log:
        return []
    return unlogged(prepared.fixture, prepared.expected(), run.logs, actual)


def _shown(path: Path) -> Path:
    """Return a path as one would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _refresh(suite: Suite, scenario: Scenario) -> Outcome:
    directory: Path = scenario.directory
    roll_forward(directory)
    prepared = prepare(suite, scenario, transcript=False)
    run, problems = replay_once(prepared)
    report = _report(run, scenario, Mode.REFRESH, problems)
    if problems:
        return Outcome(report=report)
    actual = prepared.actual(run)
    headers = prepared.told(run, actual)
    with_logs = prepared.compares_log
    new = files_of(actual, scenario.file, headers=headers, with_logs=with_logs)
    problems = [*refusals(new, run.roots), *_unlogged(prepared, run, actual)]
    if problems:
        return Outcome(report=replace(report, problems=problems))
    written = write(directory, new, with_logs=with_logs)
    forget(suite.directory, scenario.name)
    report = replace(report, outcome="passed", stderr_tail="", written=written)
    return Outcome(report=report, headers=headers)
