"""Which live session owns a script, across processes: one claim file per script."""

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any, Protocol

from llm_replay.verdict import read_verdict, written_by_others


class Claims(Protocol):
    """Who may serve what. A session without an id is the anonymous one of its process."""

    def script_of(self, session: str | None) -> int | None:
        """Return the script that `session` had before this process was started."""
        ...

    def take(self, script: int, session: str | None) -> int | None:
        """Return how many calls `session` was served before, or `None`: it is another's."""
        ...

    def release(self) -> None:
        """Give back all that was taken here."""
        ...


class NoClaims:
    """Nobody else serves these scripts: replay inside one process."""

    def script_of(self, session: str | None) -> int | None:  # noqa: ARG002  as the protocol says
        """Return `None`: nothing outlives this process."""
        return None

    def take(self, script: int, session: str | None) -> int | None:  # noqa: ARG002  as the protocol says
        """Return 0: whoever comes first has it."""
        return 0

    def release(self) -> None:
        """Do nothing."""


class ClaimFiles:
    """Claims as `<script>.claim` files beside the verdicts.

    A claim is a hard link to a file that is already finished, so that two processes never have
    the same one and none is ever half written. The verdicts of other processes count too: one
    that ended in order has released its claims, and its sessions still go on where they were.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._taken: list[Path] = []

    def script_of(self, session: str | None) -> int | None:
        """Return the script that `session` had before this process was started."""
        if session is None:
            return None
        for script, bound in self._earlier():
            if bound == session:
                return script
        return None

    def take(self, script: int, session: str | None) -> int | None:
        """Return how many calls `session` was served before, or `None`: it is another's."""
        if self._served_to(script, session) is False:
            return None
        owner = _owner(session)
        found = self._claim(script, owner)
        if found is not None and found != owner:
            return None
        # Once more, now that nobody else can: a process may have come and gone since.
        mine = self._served_to(script, session)
        if mine is False:
            self._taken.pop().unlink(missing_ok=True)
            return None
        return self._last_call(script) if mine or found else 0

    def release(self) -> None:
        """Give back all that was taken here."""
        while self._taken:
            self._taken.pop().unlink(missing_ok=True)

    def _served_to(self, script: int, session: str | None) -> bool | None:
        """Say whether another process served `script` to `session`, or `None` if it did to none."""
        owners = [owner for bound, owner in self._earlier() if bound == script]
        return session is not None and session in owners if owners else None

    def _earlier(self) -> list[tuple[int | None, str | None]]:
        return [
            (fact.get("script"), fact.get("session"))
            for file in written_by_others(self._directory)
            for fact in file.facts
            if fact["fact"] == "bound"
        ]

    def _last_call(self, script: int) -> int:
        calls = [
            fact.get("call", 0)
            for file in read_verdict(self._directory)
            for fact in file.facts
            if fact["fact"] == "call" and fact.get("script") == script
        ]
        return max(calls, default=0)

    def _claim(self, script: int, owner: dict[str, Any]) -> object:
        """Claim `script` and return `None`, or return who has it."""
        claim = self._directory / f"{script}.claim"
        finished = self._directory / f"{os.getpid()}-{secrets.token_hex(8)}.tmp"
        finished.write_text(json.dumps(owner) + "\n", encoding="ascii")
        try:
            found = _link(claim, finished)
        finally:
            finished.unlink()
        if found is None or found == owner:
            self._taken.append(claim)
        return found


def _link(claim: Path, finished: Path) -> object:
    while True:
        try:
            claim.hardlink_to(finished)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # released just now: try again
                return json.loads(claim.read_bytes())
        else:
            return None


def _owner(session: str | None) -> dict[str, Any]:
    return {"session": None, "pid": os.getpid()} if session is None else {"session": session}
