"""A run's files, as the driver asks for them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llm_replay.exceptions import ReplayError
from llm_replay.script import SessionScript
from llm_replay.verdict import read_verdict
from snapshot_harness.exceptions import AgentError
from snapshot_harness.rundir import RunDirectory
from snapshot_harness.tail import LogTails
from snapshot_harness.verdict import Told, fold, hangs_now

_SHOWN_FILES = 20


@dataclass(frozen=True)
class RunFiles:
    """What a run has left by now. `tells`: its replay must tell a verdict."""

    directory: RunDirectory
    scripts: Sequence[SessionScript]
    live: bool
    tells: bool

    @cached_property
    def roots(self) -> dict[str, str]:
        """The run's directories by token name."""
        run = self.directory.path
        parts = {part: str(run / part) for part in ("home", "tmp", "sessions", "spill")}
        return {"cwd": str(self.directory.cwd), **parts, "run": str(run)}

    @cached_property
    def _tails(self) -> LogTails:
        return LogTails(self.directory.path / "sessions")

    def has_file(self, path: str) -> bool:
        """Tell whether a path below the cwd exists."""
        return os.path.lexists(self.directory.cwd / path)

    def files(self) -> Sequence[str]:
        """Return some of the cwd's entries."""
        return sorted(os.listdir(self.directory.cwd))[:_SHOWN_FILES]  # noqa: PTH208  names are enough

    def events(self, session: str) -> Sequence[dict[str, Any]]:
        """Return what a session's log holds by now."""
        return self._tails.events(session)

    def children(self, session: str) -> Sequence[Sequence[dict[str, Any]]]:
        """Return what the logs of a session's children hold by now."""
        return self._tails.children(session)

    def hanging(self) -> int | None:
        """Return how often a call hung so far; None if the agent tells no verdict."""
        told = self.told()
        return len(told.hanging) if told.installed or self.tells else None

    def hangs_now(self) -> bool:
        """Tell whether the last call of some script is one that hangs."""
        return hangs_now(self.told(), self.scripts)

    def told(self) -> Told:
        """Return what the agent's replay has told so far.

        Raises:
            AgentError: It is not what the contract says.
        """
        verdict = self.directory.path / "verdict"
        pipes = [path.name for path in verdict.glob("*.jsonl") if not path.is_file()]
        if pipes:  # reading one would never end
            raise AgentError(
                what=f"the agent's verdict can't be read: {pipes[0]} is no regular file",
                hint="let the agent write each verdict into a file of its own",
            )
        try:
            return fold(read_verdict(verdict))
        except ReplayError as error:
            raise AgentError(what=f"the agent's verdict can't be read: {error}") from None
