"""What a plan is made of: things to do, things to wait for, a world to ask about. No I/O."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Send:
    """Write these bytes to the agent's stdin."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Serve:
    """Answer this request of the agent from the real world."""

    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Restart:
    """End the agent, boot it again, then call `restarted`."""

    kill: bool


Action: TypeAlias = Send | Serve | Restart


@dataclass(frozen=True, slots=True)
class Until:
    """Go on when `check` is true; `seen` tells what there was instead, when it never was."""

    check: Callable[[], bool]
    what: str
    seen: Callable[[], str]
    timeout_s: float | None = None
    polls: bool = False


Move: TypeAlias = Action | Until
Moves: TypeAlias = Iterator[Move]


class StepFailedError(Exception):
    """A step did not go as input.json says; `place` is its number from 0 and its operation."""

    def __init__(self, *, place: str, what: str, hint: str = "", timed_out: bool = False) -> None:
        self.place = place
        self.what = what
        self.hint = hint
        self.timed_out = timed_out
        super().__init__(f"{place}: {what}")


class RefusedError(Exception):
    """A step can't go on; the driver adds which one."""

    def __init__(self, what: str, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        super().__init__(what)


class World(Protocol):
    """What the driver may ask of the run's files."""

    @property
    def live(self) -> bool:
        """Whether a live model answers, so that nothing hangs on purpose."""
        ...

    @property
    def roots(self) -> dict[str, str]:
        """The run's roots by token name, `cwd` first of all."""
        ...

    def has_file(self, path: str) -> bool:
        """Tell whether a path below the cwd exists."""
        ...

    def files(self) -> Sequence[str]:
        """Return some of the cwd's entries, for a message."""
        ...

    def events(self, session: str) -> Sequence[dict[str, Any]]:
        """Return what a session's log holds by now."""
        ...

    def children(self, session: str) -> Sequence[Sequence[dict[str, Any]]]:
        """Return what the logs of a session's children hold by now, in order of lineage."""
        ...

    def hanging(self) -> int | None:
        """Return how often a call hung so far; None if the agent tells no verdict."""
        ...

    def hangs_now(self) -> bool:
        """Tell whether the last call of some script is one that hangs."""
        ...


@dataclass(slots=True)
class Session:
    """What the client knows of one session."""

    id: str
    updates: list[dict[str, Any]]
    """The updates since the last prompt, or since its creation."""
    since: int = 0
    """The place in the transcript where the last prompt was sent."""
    hung: int | None = 0
    """How many calls had hung before the last prompt; None if the agent tells no verdict."""
    prompt: int | None = None
    """The id of the prompt request in flight."""
    cancelling: bool = False
