"""Collecting what a turn wants done, in order. No I/O."""

from collections.abc import Mapping
from typing import Any

from acp_example.effects import Effect, Record, Tell
from acp_example.session import Conversation
from acp_example.updates import FrameNames

_CALLS = ("tool_call", "tool_call_update")


class Recorder:
    """Keeps effects until they are taken; what is recorded is part of the conversation at once.

    Of a child session the client sees tool calls only.
    """

    def __init__(self, conversation: Conversation, frames: FrameNames) -> None:
        self.conversation = conversation
        self.frames = frames
        self._effects: list[Effect] = []

    def record(self, kind: str, data: Mapping[str, Any], **envelope: object) -> int:
        """Append an event and return its number."""
        event = self.conversation.record(kind, data, **envelope)
        self._effects.append(Record(event))
        return len(self.conversation.events) - 1

    def tell(self, update: Mapping[str, Any]) -> bool:
        """Show the client an update; say whether it sees it."""
        if self.frames.parent is not None and update["sessionUpdate"] not in _CALLS:
            return False
        self._effects.append(Tell({**update, **self.frames.meta()}))
        return True

    def do(self, effect: Effect) -> None:
        """Ask for something else."""
        self._effects.append(effect)

    def take(self) -> list[Effect]:
        """Hand over what has been collected."""
        effects, self._effects = self._effects, []
        return effects
