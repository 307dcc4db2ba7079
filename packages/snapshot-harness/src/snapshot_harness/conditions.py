"""What a step may wait for: facts in the agent's log, its frames and its directory."""

from typing import Annotated, Any, Literal, TypeAlias

import pydantic

from snapshot_harness.documents import Strict

DEFAULT_WAIT_MS = 10_000

SessionNumber = Annotated[int, pydantic.Field(ge=1)]


class Step(Strict):
    """One operation."""


class SessionStep(Step):
    """An operation on a session."""

    session: SessionNumber | None = None
    """The session's number by creation, from 1; default: the latest."""


class Wait(SessionStep):
    """An operation that waits for a fact."""

    timeout_ms: Annotated[int, pydantic.Field(gt=0)] = pydantic.Field(
        default=DEFAULT_WAIT_MS, alias="timeoutMs"
    )
    """How long, in milliseconds."""


class WaitForFile(Wait):
    """Wait until a file is there."""

    op: Literal["waitForFile"] = "waitForFile"
    path: str = pydantic.Field(min_length=1)
    """Relative to the run's cwd."""


class WaitForTurnStart(Wait):
    """Wait until the session's log has an open turn."""

    op: Literal["waitForTurnStart"] = "waitForTurnStart"
    minimum_turn: Annotated[int, pydantic.Field(ge=1)] = pydantic.Field(
        default=1, alias="minimumTurn"
    )
    """The open turn's number, at least."""


class WaitForTurnEnd(Wait):
    """Wait until the last turn in the session's log is closed."""

    op: Literal["waitForTurnEnd"] = "waitForTurnEnd"


class WaitForSubagentTurnEnd(Wait):
    """Wait until a child of the session closed a turn."""

    op: Literal["waitForSubagentTurnEnd"] = "waitForSubagentTurnEnd"
    child: Annotated[int, pydantic.Field(ge=1)] = 1
    """Which child, in order of lineage, from 1."""
    minimum_turn: Annotated[int, pydantic.Field(ge=1)] = pydantic.Field(
        default=1, alias="minimumTurn"
    )
    """The closed turn's number, at least."""


class WaitForUpdate(Wait):
    """Wait for a `session/update`, or another frame, since the session's last prompt."""

    op: Literal["waitForUpdate"] = "waitForUpdate"
    update: dict[str, Any] = pydantic.Field(default={})
    """What the update holds, at least: objects match by the keys named here."""
    frame: dict[str, Any] = pydantic.Field(default={})
    """Instead of `update`: what any frame of the agent holds, at least."""

    @pydantic.model_validator(mode="after")
    def _one_of_both(self) -> "WaitForUpdate":
        if bool(self.update) == bool(self.frame):
            raise ValueError("it waits for either an `update` or a `frame`")
        return self


class WaitForEvent(Wait):
    """Wait for an event in the session's log."""

    op: Literal["waitForEvent"] = "waitForEvent"
    type: str = pydantic.Field(min_length=1)
    """The event's type."""
    where: dict[str, Any] = pydantic.Field(default={})
    """What its data holds, at least."""
    after: str | None = None
    """Only events after the last one of this type."""


LogWait: TypeAlias = WaitForTurnStart | WaitForTurnEnd | WaitForSubagentTurnEnd | WaitForEvent
AnyWait: TypeAlias = WaitForFile | WaitForUpdate | LogWait


class FileCondition(Strict):
    """The file that a cancel waits for."""

    path: str = pydantic.Field(min_length=1)
    """Relative to the run's cwd."""
    timeout_ms: Annotated[int, pydantic.Field(gt=0)] = pydantic.Field(
        default=DEFAULT_WAIT_MS, alias="timeoutMs"
    )
    """How long, in milliseconds."""


class Conditional(SessionStep):
    """An operation whose moment is a fact."""

    wait: Annotated[AnyWait, pydantic.Field(discriminator="op")] | None = None
    """What must be true first: any one wait operation."""
    wait_for_file: FileCondition | None = pydantic.Field(default=None, alias="waitForFile")
    """Short for a `wait` with `waitForFile`."""

    @pydantic.model_validator(mode="after")
    def _one_condition(self) -> "Conditional":
        if self.wait is not None and self.wait_for_file is not None:
            raise ValueError("`wait` and `waitForFile` exclude each other")
        return self

    @property
    def condition(self) -> AnyWait | None:
        """The wait, however it was spelled."""
        if self.wait_for_file is None:
            return self.wait
        return WaitForFile(path=self.wait_for_file.path, timeoutMs=self.wait_for_file.timeout_ms)


class Interrupting(Conditional):
    """An operation that cuts a model call, at a place that is a fact."""

    hanging: Annotated[int, pydantic.Field(ge=0)] | None = None
    """How many calls must hang first, in replay; default: 1 if the call in flight hangs."""
