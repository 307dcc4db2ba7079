"""One run of the agent for a scenario: everything around it made, and what it left read."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from llm_replay.script import SessionScript
from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots
from snapshot_harness.client import Client
from snapshot_harness.driver import Driver
from snapshot_harness.environment import ScriptFiles, agent_environment
from snapshot_harness.exceptions import AgentError
from snapshot_harness.harvest import harvest
from snapshot_harness.leftovers import kill_escaped
from snapshot_harness.moves import play
from snapshot_harness.order import call_of
from snapshot_harness.rundir import RunDirectory, make_run_directory, sweep
from snapshot_harness.shell import Boot, Shell
from snapshot_harness.steps import Script
from snapshot_harness.suite import Scenario, Suite, workspace_parent
from snapshot_harness.verdict import Told
from snapshot_harness.watchdog import WATCHDOG
from snapshot_harness.workspace import copy_workspace
from snapshot_harness.world import RunFiles


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run left: both surfaces, the verdict, and what went wrong."""

    logs: list[SessionLog]
    transcript: list[dict[str, Any]]
    told: Told
    roots: Roots
    failure: AgentError | None = None
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stderr_tail: str = ""


_swept: set[int] = set()


def run_agent(  # noqa: PLR0913  all that a run is made of
    suite: Suite,
    scenario: Scenario,
    steps: Script,
    *,
    files: ScriptFiles | None,
    scripts: Sequence[SessionScript] = (),
    extra_env: Mapping[str, str] | None = None,
) -> Run:
    """Boot the agent in a directory of its own, play the script, and read what it left.

    Without `files` a live model answers.
    """
    named = {**suite.env_for(scenario.file), **(extra_env or {})}
    required = suite.file.verdict == "required"
    with run_directory(workspace_parent=workspace_parent(suite, scenario)) as directory:
        copy_workspace(scenario.directory / "workspace", directory.cwd)
        env = agent_environment(directory, files, named)
        world = RunFiles(directory, scripts, live=files is None, tells=required)
        driver = Driver(
            partial(play, steps),
            world=world,
            step_s=suite.file.deadlines.step_s,
            answers=steps.permission_answers,
            capabilities=suite.capabilities,
        )
        shell = Shell(_boot(suite, scenario, directory, env), driver, Client(directory.cwd, env))
        with_logs = suite.file.log == "session-jsonl"
        needed = steps.prompts and scenario.file.compares_log is not False
        return _run(shell, world, with_logs=with_logs, needed=needed)


@contextlib.contextmanager
def run_directory(*, workspace_parent: Path | None = None) -> Iterator[RunDirectory]:
    """Make a run directory that is removed whatever happens, also to this process."""
    _sweep_once()
    directory = make_run_directory(
        workspace_parent=workspace_parent, announce=WATCHDOG.add_directory
    )
    try:
        yield directory
    finally:
        directory.remove()
        for path in directory.removals:
            WATCHDOG.drop_directory(path)


def _boot(
    suite: Suite, scenario: Scenario, directory: RunDirectory, env: Mapping[str, str]
) -> Boot:
    deadlines = suite.file.deadlines
    return Boot(
        argv=suite.command_for(scenario.file),
        env=env,
        directory=directory,
        scenario_s=scenario.file.timeout_s or deadlines.scenario_s,
        shutdown_s=deadlines.shutdown_s,
    )


def _run(shell: Shell, world: RunFiles, *, with_logs: bool, needed: bool) -> Run:
    sessions = world.directory.path / "sessions"
    failure: AgentError | None = None
    logs: list[SessionLog] = []
    told = Told(installed=False)
    try:
        try:
            shell.run()
        finally:
            told = world.told()
        if with_logs:
            logs = harvest(sessions, needed=needed)
    except AgentError as error:
        failure = error
        with contextlib.suppress(AgentError):  # what there is shows where it went wrong
            logs = harvest(sessions, unfinished=True) if with_logs else []
    driver = shell.driver
    return Run(
        logs=logs,
        transcript=driver.transcript,
        told=told,
        roots=Roots(**world.roots),
        failure=failure,
        findings=[*shell.findings, *driver.desk.unnamed_in(_tool_runs(driver.transcript))],
        notes=driver.notes,
        stderr_tail=shell.stderr_tail,
    )


def _tool_runs(transcript: Sequence[dict[str, Any]]) -> list[list[int]]:
    """Return the places of each run of frames that name a call."""
    runs: list[list[int]] = [[]]
    for place, frame in enumerate(transcript):
        if call_of(frame) is None:
            runs.append([])
        else:
            runs[-1].append(place)
    return runs


def _sweep_once() -> None:
    """Sweep what killed runners left, once per process."""
    if os.getpid() not in _swept:
        _swept.add(os.getpid())
        sweep(kill_escaped)
