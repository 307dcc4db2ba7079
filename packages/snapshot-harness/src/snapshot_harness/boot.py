"""One run of the agent for a scenario: everything around it made, and what it left read."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from llm_replay.exceptions import ReplayError
from llm_replay.script import SessionScript
from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots
from llm_replay.verdict import read_verdict
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
from snapshot_harness.suite import Scenario, Suite
from snapshot_harness.tail import LogTails
from snapshot_harness.verdict import Told, fold, hangs_now
from snapshot_harness.watchdog import WATCHDOG

_SHOWN_FILES = 20


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


@dataclass(frozen=True)
class _World:
    """The run's files, as the driver asks for them."""

    directory: RunDirectory
    scripts: Sequence[SessionScript]
    live: bool
    tells: bool

    @cached_property
    def roots(self) -> dict[str, str]:
        run = self.directory.path
        parts = {part: str(run / part) for part in ("home", "tmp", "sessions", "spill")}
        return {"cwd": str(self.directory.cwd), **parts, "run": str(run)}

    @cached_property
    def _tails(self) -> LogTails:
        return LogTails(self.directory.path / "sessions")

    def has_file(self, path: str) -> bool:
        return os.path.lexists(self.directory.cwd / path)

    def files(self) -> Sequence[str]:
        return sorted(os.listdir(self.directory.cwd))[:_SHOWN_FILES]  # noqa: PTH208  names are enough

    def events(self, session: str) -> Sequence[dict[str, Any]]:
        return self._tails.events(session)

    def children(self, session: str) -> Sequence[Sequence[dict[str, Any]]]:
        return self._tails.children(session)

    def hanging(self) -> int | None:
        told = self._told()
        return len(told.hanging) if told.installed or self.tells else None

    def hangs_now(self) -> bool:
        return hangs_now(self._told(), self.scripts)

    def _told(self) -> Told:
        return read_told(self.directory.path / "verdict")


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
    with run_directory(workspace_parent=_workspace_parent(suite, scenario)) as directory:
        return _run_in(
            directory, suite, scenario, steps, files=files, scripts=scripts, extra=extra_env
        )


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


def _run_in(  # noqa: PLR0913  all that a run is made of
    directory: RunDirectory,
    suite: Suite,
    scenario: Scenario,
    steps: Script,
    *,
    files: ScriptFiles | None,
    scripts: Sequence[SessionScript],
    extra: Mapping[str, str] | None,
) -> Run:
    copy_workspace(scenario.directory / "workspace", directory.cwd)
    named = {**suite.env_for(scenario.file), **(extra or {})}
    env = agent_environment(directory, files, named)
    live = files is None
    world = _World(directory, scripts, live, suite.file.verdict == "required")
    driver = Driver(
        lambda driver: play(steps, driver),
        world=world,
        step_s=suite.file.deadlines.step_s,
        answers=steps.permission_answers,
        capabilities=suite.capabilities,
    )
    boot = Boot(
        argv=suite.command_for(scenario.file),
        env=env,
        directory=directory,
        scenario_s=scenario.file.timeout_s or suite.file.deadlines.scenario_s,
        shutdown_s=suite.file.deadlines.shutdown_s,
    )
    shell = Shell(boot, driver, Client(directory.cwd, env))
    failure: AgentError | None = None
    logs: list[SessionLog] = []
    told = Told(installed=False)
    try:
        try:
            shell.run()
        finally:
            told = read_told(directory.path / "verdict")
        if suite.file.log == "session-jsonl":
            logs = harvest(directory.path / "sessions")
    except AgentError as error:
        failure = error
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


def read_told(directory: Path) -> Told:
    """Return what the agent's replay has told so far.

    Raises:
        AgentError: It is not what the contract says.
    """
    try:
        return fold(read_verdict(directory))
    except ReplayError as error:
        raise AgentError(what=f"the agent's verdict can't be read: {error}") from None


def copy_workspace(source: Path, cwd: Path) -> None:
    """Copy a scenario's workspace, with modes that hang neither on the checkout nor the umask."""
    if not source.is_dir():
        return
    for directory, names, files in os.walk(source):
        below = cwd / Path(directory).relative_to(source)
        below.mkdir(exist_ok=True)
        if below != cwd:
            below.chmod(0o755)
        links = [name for name in names if Path(directory, name).is_symlink()]
        for name in [*files, *links]:
            _copy_file(Path(directory, name), below / name)


def _copy_file(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    shutil.copyfile(source, target)
    runs = source.stat().st_mode & stat.S_IXUSR
    target.chmod(0o755 if runs else 0o644)


def _tool_runs(transcript: Sequence[dict[str, Any]]) -> list[list[int]]:
    """Return the places of each run of frames that name a call."""
    runs: list[list[int]] = [[]]
    for place, frame in enumerate(transcript):
        if call_of(frame) is None:
            runs.append([])
        else:
            runs[-1].append(place)
    return runs


def _workspace_parent(suite: Suite, scenario: Scenario) -> Path | None:
    parent = scenario.file.workspace_parent
    return None if parent is None else suite.directory / Path(parent).expanduser()


def _sweep_once() -> None:
    """Sweep what killed runners left, once per process."""
    if os.getpid() not in _swept:
        _swept.add(os.getpid())
        sweep(kill_escaped)
