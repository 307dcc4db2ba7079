"""A scenario's files, read and ready to be run; and how a run is seen beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_replay.config import ReplayConfig
from llm_replay.derive import derive_calls
from llm_replay.exceptions import ReplayError
from llm_replay.script import SessionScript, load_session_scripts
from llm_replay.session_log import read_session_log
from snapshot_harness.blocks import block_causes
from snapshot_harness.boot import Run, run_agent
from snapshot_harness.causes import Cause
from snapshot_harness.environment import ScriptFiles
from snapshot_harness.exceptions import FixtureError, Problem
from snapshot_harness.fixtures import (
    INPUT,
    OVERRIDE,
    Fixture,
    find_logs,
    overridden_calls,
    read_fixture,
    read_overrides,
)
from snapshot_harness.headers import Told, collect
from snapshot_harness.model_rows import seed_length
from snapshot_harness.normalize import Normalized, normalize_fixture, normalize_run
from snapshot_harness.run_report import shown_path
from snapshot_harness.served import unlogged
from snapshot_harness.steps import Script, read_script
from snapshot_harness.suite import Scenario, Suite, rules_of, rules_of_run
from snapshot_harness.verdict import judge, name_of


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a scenario's files say. `with_logs`: the logs are compared, and written."""

    suite: Suite
    scenario: Scenario
    steps: Script
    fixture: Fixture
    files: ScriptFiles
    scripts: Sequence[SessionScript]
    with_logs: bool

    def expected(self) -> Normalized:
        """Return both surfaces of the fixture."""
        return normalize_fixture(
            self.fixture.logs if self.with_logs else [],
            self.fixture.transcript,
            rules=rules_of(self.suite),
            overridden=self.fixture.overridden,
        )

    def actual(self, run: Run) -> Normalized:
        """Return both surfaces of a run."""
        return normalize_run(
            run.logs if self.with_logs else [],
            run.transcript,
            roots=run.roots,
            rules=rules_of_run(self.suite, self.scenario),
            overridden=self.fixture.overridden,
            foreign=self.fixture.foreign,
        )

    def told(self, run: Run, actual: Normalized) -> list[Told]:
        """Return what a run's sessions were told, also where their logs are not compared."""
        if self.with_logs:
            return collect(actual.headers)
        rules = rules_of_run(self.suite, self.scenario)
        return collect(normalize_run(run.logs, [], roots=run.roots, rules=rules).headers)

    def unlogged(self, run: Run, actual: Normalized) -> list[str]:
        """Return where the agent did not log what it was served."""
        if not self.with_logs:
            return []
        return unlogged(self.fixture, self.expected(), run.logs, actual)

    def contradictions(self) -> list[Cause]:
        """Return where the fixture's own rows contradict each other: what follows is no wonder."""
        return [] if self.scenario.file.malformed else block_causes(self.fixture.logs)

    def replay(self) -> tuple[Run, list[str]]:
        """Run the agent over the script; return what it left and what is wrong with the run."""
        run = run_agent(
            self.suite, self.scenario, self.steps, files=self.files, scripts=self.scripts
        )
        if run.failure is not None:
            # A fault explains what the agent did next; what it left unasked does not.
            return run, [*run.told.faults, str(run.failure), *run.findings]
        required = self.suite.file.verdict == "required"
        found = judge(run.told, self.scripts, required=required, where=self._where)
        return run, [*found, *run.findings]

    def _where(self, script: SessionScript, call: int | None) -> str:
        """Return where a script stands, or one of its calls, as one would open it."""
        committed = self.fixture.directory == self.scenario.directory
        directory = f"{shown_path(self.fixture.directory)}/" if committed else ""
        line = self._line(script.index, call) if call is not None else None
        return f"{directory}{name_of(script)}" + ("" if line is None else f":{line}")

    def _line(self, index: int, call: int) -> int | None:
        if index >= len(self.fixture.logs):
            return None  # an override is the whole script
        log = self.fixture.logs[index]
        calls = derive_calls(log.events, seed_length=seed_length(log) if index else 0)
        return log.lines[calls[call - 1].place] if call <= len(calls) else None


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
    steps = read_script(directory / INPUT)
    said = scenario.file.compares_log
    compares = steps.prompts if said is None else said
    return Prepared(
        suite=suite,
        scenario=scenario,
        steps=steps,
        fixture=fixture,
        files=files,
        scripts=_scripts(files),
        with_logs=compares and suite.file.log != "none",
    )


def prepare_staged(
    suite: Suite, scenario: Scenario, steps: Script, paths: Sequence[Path]
) -> Prepared:
    """Read a script that record has staged, beside the scenario's own override.

    Raises:
        HarnessError: No script can be derived from it.
    """
    directory = scenario.directory
    override = directory / OVERRIDE if scenario.file.overridden else None
    overrides = {} if override is None else read_overrides(directory, len(paths))
    files = ScriptFiles(paths[0], paths[1:], override)
    fixture = Fixture(
        directory=paths[0].parent,
        logs=[read_session_log(path.read_bytes(), name=path.name) for path in paths],
        transcript=[],
        overridden={place: overridden_calls(one) for place, one in overrides.items()},
    )
    return Prepared(
        suite=suite,
        scenario=scenario,
        steps=steps,
        fixture=fixture,
        files=files,
        scripts=_scripts(files),
        with_logs=True,
    )


def _scripts(files: ScriptFiles) -> list[SessionScript]:
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
