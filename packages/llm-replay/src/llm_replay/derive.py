"""Events of a log to the model calls in it. No I/O.

A call is the chunks up to its `finish`. Where the log says when a call was asked
for (`llm/call`), a call without a finish is derived too, from what happened next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from llm_replay.calls import DerivedCall, Purpose, ReplayEntry
from llm_replay.packing import PACKED, count_members
from llm_replay.values import shown

__all__ = ["DerivedCall", "ReplayEntry", "derive_calls", "derive_replay_script"]


def derive_calls(events: Iterable[dict[str, Any]], *, seed_length: float = 0) -> list[DerivedCall]:
    """Return the calls of a log in order, those that can't be derived as holes.

    The first `seed_length` events are inherited and cut off; a negative number counts
    from the end. Positions count from the very first event. Packed rows are taken too,
    as the events they stand for.
    """
    skip = int(seed_length)
    if skip < 0:
        events = list(events)
        skip = max(0, sum(map(_length, events)) + skip)
    derivation = _Derivation()
    derivation.walk(events, skip)
    return derivation.calls


def derive_replay_script(events: Iterable[dict[str, Any]]) -> list[ReplayEntry]:
    """Return the entries that replay the calls of a log.

    Raises:
        UnfinishedCallError: A call never finished, and the log can't say how it ended.
        ScriptError: A record that a call is derived from is not what it should be.
    """
    entries = []
    for call in derive_calls(events):
        if call.entry is None:
            raise call.error("session snapshot")
        entries.append(call.entry)
    return entries


@dataclass(slots=True, kw_only=True)
class _Open:
    """A call whose end is not known yet."""

    turn: Any
    step: Any
    place: int
    purpose: Purpose = "turn"
    announced: bool = False
    parts: list[Any] = field(default_factory=list)
    others: list[int] = field(default_factory=list)

    def positions(self, end: int) -> Sequence[int]:
        """Return the indexes of its chunks: all before `end` that are not of other events."""
        every = range(self.place + self.announced, end)
        if not self.others:
            return every
        others = set(self.others)
        return tuple(index for index in every if index not in others)


class _Derivation:
    """The walk over a log: calls that are done, and the one that is open."""

    def __init__(self) -> None:
        self.calls: list[DerivedCall] = []
        self._open: _Open | None = None
        self._facts = {
            "llm/call": self._asked,
            "assistant/message": self._message,
            "turn/end": self._turn_end,
            "compaction/summary": self._summary,
            "compaction/end": self._compaction_end,
            "llm/retry": self._retry,
        }

    def walk(self, events: Iterable[dict[str, Any]], skip: int) -> None:
        """Take in a whole log; the first `skip` events are only counted."""
        index = 0
        for event in events:  # this loop is the speed of deriving: keep it bare
            try:
                kind = event["type"]
                if kind == "assistant/chunk":
                    data = event["data"]
                    turn, step, chunk = data["turn"], data["step"], data["chunk"]
                    finished = chunk["type"] == "finish"
            except (KeyError, TypeError):
                index = self._unusual(index, event, skip)
                continue
            if kind != "assistant/chunk":
                index = self._other(index, event, skip)
                continue
            if index >= skip:
                call = self._open
                if call is None or call.turn != turn or call.step != step:
                    call = self._begin(index, turn, step)
                call.parts.append(chunk)
                if finished:
                    self._close(call, index + 1)
            index += 1
        self._end(index)

    def _unusual(self, index: int, event: dict[str, Any], skip: int) -> int:
        """Take in an event without a type, or a chunk without one, or no chunk at all."""
        if type(event) is not dict:
            raise TypeError
        if "type" in event and index >= skip:
            data = event.get("data")
            if type(data) is dict and data.keys() >= {"turn", "step", "chunk"} and _bare(data):
                self._belonging(index, data).parts.append(data["chunk"])
            else:
                self._leave(index, "a chunk that can't be read follows")
                call = _Open(turn=None, step=None, place=index)
                what = "this assistant/chunk has no turn, step and chunk"
                self._close(call, index, problem=what)
        elif "type" not in event:
            self._pass(index, skip)
        return index + 1

    def _pass(self, index: int, skip: int) -> None:
        """Note an event in the middle of a call that is none of its chunks."""
        if self._open and index >= skip:
            self._open.others.append(index)

    def _other(self, index: int, event: dict[str, Any], skip: int) -> int:
        """Take in an event that is no chunk, or several in a packed row."""
        kind = event["type"]
        if type(kind) is not str:
            self._pass(index, skip)
            return index + 1
        if kind in PACKED:
            end = index + count_members(event)
            if skip < end:
                first = max(index, skip)
                self._belonging(first, event["data"]).parts.append((event, first - index))
            return end
        if index >= skip:
            if kind in self._facts:
                data = event.get("data")
                self._facts[kind](index, data if type(data) is dict else {})
            self._pass(index, skip)
        return index + 1

    def _belonging(self, index: int, data: dict[str, Any]) -> _Open:
        """Return the call that a chunk of this turn and step belongs to."""
        call = self._open
        if call is None or call.turn != data["turn"] or call.step != data["step"]:
            call = self._begin(index, data["turn"], data["step"])
        return call

    def _begin(self, index: int, turn: Any, step: Any) -> _Open:  # noqa: ANN401  any JSON
        """Open a call that the log did not announce."""
        self._leave(index, "chunks of another step follow")
        self._open = _Open(turn=_label(turn), step=_label(step), place=index)
        return self._open

    def _asked(self, index: int, data: dict[str, Any]) -> None:
        self._leave(index, "the next call follows")
        purpose: Purpose = "compaction" if data.get("purpose") == "compaction" else "turn"
        self._open = _Open(
            turn=_label(data.get("turn")),
            step=_label(data.get("step")),
            place=index,
            purpose=purpose,
            announced=True,
        )

    def _message(self, index: int, data: dict[str, Any]) -> None:
        if call := self._announced():
            self._close(call, index, "hang" if data.get("interrupted") is True else "chunks")

    def _turn_end(self, index: int, data: dict[str, Any]) -> None:
        if call := self._announced():
            reason = data.get("reason")
            kind = reason.get("kind") if type(reason) is dict else None
            if kind in ("aborted", "interrupted"):
                self._close(call, index, "hang")
            else:
                self._leave(index, f"the turn ended with {shown(kind)}")

    def _summary(self, index: int, data: dict[str, Any]) -> None:
        if data.get("llmStreamCall") is not True:
            if not self._announced():
                self._leave(index, "a compaction follows")
            return
        call = self._announced("compaction")
        if call is None:
            self._leave(index, "a compaction follows")
            turn, step = _label(data.get("turn")), _label(data.get("step"))
            call = _Open(turn=turn, step=step, place=index, purpose="compaction")
        output = data.get("rawOutput")
        if type(output) is list and all(type(block) is dict for block in output):
            call.parts = _summary_chunks(output, data)
            self._close(call, index, summary=True)
        else:
            what = "this compaction/summary says llmStreamCall, and has no rawOutput of blocks"
            self._close(call, index, summary=True, problem=what)

    def _compaction_end(self, index: int, data: dict[str, Any]) -> None:
        error = data.get("error")
        call = self._announced()
        if call and type(error) is dict and error.get("code") == "ABORTED":
            self._close(call, index, "hang")
        else:
            self._failed(index, error)

    def _retry(self, index: int, data: dict[str, Any]) -> None:
        self._failed(index, data.get("failure"))

    def _failed(self, index: int, failure: object) -> None:
        """End an open compaction, whose chunks are not logged, with the failure that is."""
        call = self._announced("compaction")
        if call and type(failure) is dict:
            reason = {"kind": "error", "failure": failure}
            call.parts.append({"type": "finish", "reason": reason})
            self._close(call, index)

    def _end(self, index: int) -> None:
        if call := self._announced():
            self._close(call, index, "hang")
        self._leave(index, "the log ends")

    def _announced(self, purpose: Purpose | None = None) -> _Open | None:
        """Return the open call, if the log said when it was asked for, and what for."""
        call = self._open
        return call if call and call.announced and purpose in (None, call.purpose) else None

    def _leave(self, index: int, what: str) -> None:
        """Make the open call, if there is one, a hole: nothing said how it ended."""
        if self._open:
            why = f"It has no finish chunk, and {what}."
            self._close(self._open, index, problem=why, unfinished=True)

    def _close(  # noqa: PLR0913  four facts by keyword
        self,
        call: _Open,
        end: int,
        kind: Literal["chunks", "hang"] = "chunks",
        *,
        summary: bool = False,
        problem: str | None = None,
        unfinished: bool = False,
    ) -> None:
        """Finish a call, whose chunks all stand before `end`."""
        self._open = None
        self.calls.append(
            DerivedCall(
                call=len(self.calls) + 1,
                turn=call.turn,
                step=call.step,
                purpose=call.purpose,
                kind=kind,
                parts=call.parts,
                place=call.place,
                positions=() if summary else call.positions(end),
                summary=end if summary else None,
                announced=call.announced,
                problem=problem,
                unfinished=unfinished,
            )
        )


def _length(event: dict[str, Any]) -> int:
    """Return how many events a record stands for."""
    packed = type(event) is dict and event.get("type") in tuple(PACKED)
    return count_members(event) if packed else 1


def _label(value: Any) -> Any:  # noqa: ANN401  any JSON
    """Return a turn or a step as it is compared: what is no such thing is only told."""
    return shown(value) if type(value) in (dict, list) else value


def _bare(data: dict[str, Any]) -> bool:
    """Say whether a chunk is an object without a type: odd, but carried along."""
    return type(data["chunk"]) is dict and "type" not in data["chunk"]


def _summary_chunks(blocks: list[dict[str, Any]], data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the stream that a summary came from; how its blocks were cut is lost."""
    chunks: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        chunks.append({"type": "block-start", "index": index, "blockType": block.get("type")})
        chunks.append({"type": "block-end", "index": index, "block": block})
    if "usage" in data:
        chunks.append({"type": "usage", "usage": data["usage"]})
    chunks.append({"type": "finish", "reason": {"kind": "stop"}})
    return chunks
