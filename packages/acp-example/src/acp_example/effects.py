"""What a turn may ask of the world. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acp_example.llm import ModelRequest
from acp_example.tools import CallInfo, Tool


@dataclass(frozen=True, slots=True)
class Record:
    """Write an event to the log."""

    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tell:
    """Show the client an update."""

    update: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallModel:
    """Open a stream, and hand over its chunks one by one."""

    request: ModelRequest


@dataclass(frozen=True, slots=True)
class StopModel:
    """Close the stream that is open."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the client whether call `k` may run."""

    k: int
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StartTool:
    """Run the body of call `k`."""

    k: int
    tool: Tool
    arguments: Mapping[str, Any]
    info: CallInfo


@dataclass(frozen=True, slots=True)
class StopTool:
    """Cancel the body of call `k`, or the question about it."""

    k: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait before the next attempt."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class StopSleep:
    """Stop waiting."""


@dataclass(frozen=True, slots=True)
class Done:
    """The turn is over."""

    outcome: "Outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a turn ended: a stop reason of the protocol, or a failure with its code."""

    stop_reason: str | None = None
    code: str | None = None
    message: str = ""
    fault: BaseException | None = None
    """A fault that is not the provider's and not the tool's: it must reach whoever runs this."""
    text: str = ""
    """The last answer's text."""


Effect = (
    Record | Tell | CallModel | StopModel | Ask | StartTool | StopTool | Sleep | StopSleep | Done
)
