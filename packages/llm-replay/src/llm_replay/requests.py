"""What a runtime asked a model, kept as it was, and the rules for every request. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_replay.values import copied, same, shown

Message = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A deep snapshot of one request: what the runtime changes later doesn't change it.

    `original` is the runtime's own object, for fields that are not taken over here.
    """

    messages: list[Message]
    tools: list[Any]
    system: str | None
    session_id: str | None
    lineage: str | None
    purpose: str | None
    original: Any = field(repr=False, compare=False)

    def roles(self) -> list[str]:
        """Return the role of each message."""
        return [
            role if isinstance(role := message.get("role"), str) else shown(role)
            for message in self.messages
        ]

    def tool_result(self, call_id: str) -> dict[str, Any]:
        """Return the last result block that answers `call_id`.

        Raises:
            LookupError: There is none.
        """
        found: list[dict[str, Any]] = []
        for message in self.messages:
            found += _blocks(message, "tool-result")
        answers = [block for block in found if block.get("toolCallId") == call_id]
        if answers:
            return answers[-1]
        known = ", ".join(shown(block.get("toolCallId")) for block in found) or "none at all"
        raise LookupError(f"no tool result answers {call_id!r}; there is {known}")


def snapshot(request: Any) -> RecordedRequest:  # noqa: ANN401  the runtime's own request
    """Return a deep snapshot of `request`; fields that it doesn't have are empty."""
    return RecordedRequest(
        messages=copied(list(request.messages)),
        tools=copied(list(getattr(request, "tools", None) or ())),
        system=getattr(request, "system", None),
        session_id=getattr(request, "session_id", None),
        lineage=getattr(request, "lineage", None),
        purpose=getattr(request, "purpose", None),
        original=request,
    )


def pairing_problems(messages: Sequence[Message]) -> list[str]:
    """Say how tool calls and their results don't match.

    The calls of a message are answered before the next message that the model wrote, each
    once and in order. An id may come again in a later message: local servers count from 0.
    """
    pairing = _Pairing()
    for place, message in enumerate(messages):
        pairing.where = f"messages[{place}]"
        calls = [_id(block.get("id")) for block in _blocks(message, "tool-call")]
        if calls or message.get("role") == "assistant":
            pairing.ask(calls)
        for block in _blocks(message, "tool-result"):
            pairing.answer(_id(block.get("toolCallId")))
    pairing.ask([])
    return pairing.problems


def extension_problems(earlier: Sequence[Message], later: Sequence[Message]) -> list[str]:
    """Say where a session's history was rewritten instead of extended."""
    for place, message in enumerate(earlier):
        if place >= len(later):
            return [f"messages[{place}]: was there in the request before, and is gone"]
        if not same(message, later[place]):
            return [f"messages[{place}]: differs from the request before, which it must extend"]
    return []


class _Pairing:
    """The calls of the last message that the model wrote, and which of them are answered."""

    def __init__(self) -> None:
        self.where = ""
        self.problems: list[str] = []
        self._asked = "messages[0]"
        self._open: list[object] = []
        self._answered: list[object] = []

    def ask(self, calls: list[object]) -> None:
        """Begin with the calls of the next message; those before it had to be answered."""
        self.problems += [f"{self._asked}: call {call!r} has no result" for call in self._open]
        self._asked, self._open, self._answered = self.where, calls, []
        for place, call in enumerate(calls):
            if not isinstance(call, str) or not call:
                self._problem("a call has no id")
            elif call in calls[:place]:
                self._problem(f"the call id {call!r} is there twice")

    def answer(self, call: object) -> None:
        """Take in a result."""
        if call in self._open:
            if self._open[0] != call:
                self._problem(f"the result of {call!r} stands before that of {self._open[0]!r}")
            self._open.remove(call)
            self._answered.append(call)
        elif call in self._answered:
            self._problem(f"a second result answers {call!r}")
        else:
            self._problem(f"a result answers {call!r}, which no call before it asked")

    def _problem(self, what: str) -> None:
        self.problems.append(f"{self.where}: {what}")


def _id(value: object) -> object:
    """Return an id as it can be compared; what is not even a word or a number is none."""
    return None if isinstance(value, dict | list) else value


def _blocks(message: Message, kind: str) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block
