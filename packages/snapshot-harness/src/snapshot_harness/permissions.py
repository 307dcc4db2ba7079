"""Who answers which permission request, and when. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snapshot_harness.steps import PermissionAnswer

METHOD = "session/request_permission"
CANCELLED: Mapping[str, Any] = {"outcome": {"outcome": "cancelled"}}


@dataclass(slots=True)
class _Open:
    """A request that has no answer yet."""

    request: dict[str, Any]
    session: str | None
    answer: int


@dataclass(slots=True)
class PermissionDesk:
    """Answer the agent's permission requests from a queue.

    Named answers go to their tool call, the others first in, first out. A
    mistake of the queue is noted, and told once the step has settled, so that
    a tolerant agent can't hide it.
    """

    answers: Sequence[PermissionAnswer]
    mistakes: list[str] = field(default_factory=list)
    used: dict[int, int] = field(default_factory=dict)
    _given: set[int] = field(default_factory=set)
    _taken: set[int] = field(default_factory=set)
    _open: list[_Open] = field(default_factory=list)
    _calls: dict[tuple[str | None, str | None], int] = field(default_factory=dict)

    def announce(self, session: str | None, tool_call: str) -> None:
        """Take note of a tool call, which gets the next number if it is new."""
        self._calls.setdefault((session, tool_call), len(self._calls) + 1)

    def ask(self, request: dict[str, Any], *, place: int, cancelling: bool) -> list[dict[str, Any]]:
        """Take in a request, the frame at `place`; return the responses that are due now."""
        params = as_object(request.get("params"))
        session = as_name(params.get("sessionId"))
        tool_call = as_name(as_object(params.get("toolCall")).get("toolCallId"))
        if tool_call is not None:
            self.announce(session, tool_call)
        index = None if cancelling else self._match(session, tool_call)
        if index is None:
            return [respond(request, CANCELLED)]
        self._taken.add(index)
        self.used[place] = index
        self._open.append(_Open(request, session, index))
        return list(self._due())

    def cancel(self, session: str) -> list[dict[str, Any]]:
        """Answer what is open in a session: the client has cancelled."""
        closed = [one for one in self._open if one.session == session]
        self._open = [one for one in self._open if one.session != session]
        return [respond(one.request, CANCELLED) for one in closed]

    def forget(self) -> None:
        """Drop what is open: the agent that asked is gone."""
        self._open.clear()

    def left_over(self) -> Iterator[str]:
        """Name the answers that nobody asked for."""
        for index, answer in enumerate(self.answers):
            if index not in self._taken:
                yield f"permission answer {index} ({_shown(answer)}) was never asked for"

    def held_back(self) -> Iterator[str]:
        """Name the answers that are not given yet, and what they wait for."""
        for one in self._open:
            answer = self.answers[one.answer]
            until = "a cancel" if answer.kind == "hold" else f"answer {answer.after} to be given"
            yield f"permission answer {one.answer} ({_shown(answer)}) waits for {until}"

    def unnamed_in(self, runs: Sequence[Sequence[int]]) -> Iterator[str]:
        """Name the answers that timing chose: `runs` are the places of runs of tool frames."""
        for run in runs:
            indexes = [self.used[place] for place in run if place in self.used]
            if len(indexes) < 2:  # noqa: PLR2004  one request alone is not ambiguous
                continue
            for index in indexes:
                if self.answers[index].tool_call is None:
                    yield (
                        f"permission answer {index} ({_shown(self.answers[index])}) names no "
                        "tool call, and several requests came while the same batch ran\n"
                        "  hint: add `toolCall` to it"
                    )

    def _match(self, session: str | None, tool_call: str | None) -> int | None:
        free = [
            (index, answer) for index, answer in enumerate(self.answers) if index not in self._taken
        ]
        number = self._calls.get((session, tool_call))
        for index, answer in free:
            if answer.tool_call is not None and answer.tool_call in (tool_call, number):
                return index
        return next((index for index, answer in free if answer.tool_call is None), None)

    def _due(self) -> Iterator[dict[str, Any]]:
        """Give every open answer whose predecessor was given, until none is left."""
        found = True
        while found:
            found = False
            for one in self._open:
                answer = self.answers[one.answer]
                if answer.kind == "hold" or (
                    answer.after is not None and answer.after not in self._given
                ):
                    continue
                self._open.remove(one)
                self._given.add(one.answer)
                yield self._decide(one)
                found = True
                break

    def _decide(self, one: _Open) -> dict[str, Any]:
        answer = self.answers[one.answer]
        listed = as_object(one.request.get("params")).get("options")
        options = [as_object(option) for option in listed] if isinstance(listed, list) else []
        for option in options:
            if option.get("kind") == answer.kind:
                outcome = {"outcome": "selected", "optionId": option.get("optionId")}
                return respond(one.request, {"outcome": outcome})
        offered = ", ".join(str(option.get("kind")) for option in options) or "nothing"
        self.mistakes.append(
            f"permission answer {one.answer} ({_shown(answer)}) was not offered; offered: {offered}"
        )
        return respond(one.request, CANCELLED)


def as_object(value: object) -> Mapping[str, Any]:
    """Return a JSON object; anything else the agent sends in its place has no members."""
    return value if isinstance(value, dict) else {}


def as_name(value: object) -> str | None:
    """Return an id; anything else the agent sends in its place is none."""
    return value if isinstance(value, str) else None


def respond(request: Mapping[str, Any], result: object) -> dict[str, Any]:
    """Return the response to a request; its id may be of any type."""
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": result}


def refuse(request: Mapping[str, Any], code: int, message: str) -> dict[str, Any]:
    """Return the error response to a request."""
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": error}


def _shown(answer: PermissionAnswer) -> str:
    return answer.kind + ("" if answer.tool_call is None else f" for {answer.tool_call!r}")
