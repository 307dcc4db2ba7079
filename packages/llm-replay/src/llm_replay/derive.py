"""Events of a log to the model calls in it. No I/O.

A call is the chunks up to its `finish`. Where the log says when a call was asked
for (`llm/call`), a call without a finish is derived too, from what happened next.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from llm_replay.exceptions import ScriptError, UnfinishedCallError
from llm_replay.packing import PACKED, row_chunks

ReplayEntry = dict[str, Any]
"""One call as replay serves it: the JSON object, its kind `chunks`, `throw` or `hang`."""

Purpose = Literal["turn", "compaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedCall:
    """A call of a log, in its place; `entry` is `None` for a hole, and `problem` says why.

    `place` is the index of the event it begins with, `positions` are those of its
    `assistant/chunk` events, `summary` is that of the `compaction/summary` it was derived
    from. `announced`: the log has its `llm/call`.
    """

    call: int
    turn: Any
    step: Any
    purpose: Purpose
    entry: ReplayEntry | None
    place: int
    positions: tuple[int, ...] = ()
    summary: int | None = None
    announced: bool = False
    problem: str | None = None
    unfinished: bool = False

    def error(self, where: str) -> ScriptError:
        """Return what to raise for a hole."""
        if not self.unfinished:
            return ScriptError(
                where=where,
                what=self.problem or "",
                hint="repair this record, or record the scenario again",
            )
        if self.announced:
            hint = (
                "add replay.override.json with a patch for this call: "
                f'{{"patches": [{{"at": {self.call - 1}, "entry": {{"kind": "throw", …}}}}]}}'
            )
        else:
            hint = 'add replay.override.json: a list of all entries, this one "throw" or "hang"'
        return UnfinishedCallError(
            where=where, turn=self.turn, step=self.step, why=self.problem or "", hint=hint
        )


def derive_calls(events: Iterable[dict[str, Any]], *, seed_length: float = 0) -> list[DerivedCall]:
    """Return the calls of a log in order, those that can't be derived as holes.

    The first `seed_length` events are inherited and cut off; a negative number counts
    from the end. Positions count from the very first event. Packed rows are taken too,
    as the events they stand for.
    """
    skip = int(seed_length)
    if skip < 0:
        events = list(events)
        skip = max(0, len(events) + skip)
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
    chunks: list[Any] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)


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
        for event in events:
            kind = event.get("type")
            if kind == "assistant/chunk":
                if index >= skip:
                    self._chunk(index, event)
            elif type(kind) is not str:
                pass
            elif kind in PACKED:
                chunks = row_chunks(event)
                self._deltas(index, event["data"], chunks, max(0, skip - index))
                index += len(chunks) - 1
            elif kind in self._facts and index >= skip:
                data = event.get("data")
                self._facts[kind](index, data if type(data) is dict else {})
            index += 1
        self._end()

    def _chunk(self, index: int, event: dict[str, Any]) -> None:
        try:
            data = event["data"]
            turn, step, chunk = data["turn"], data["step"], data["chunk"]
            finished = chunk.get("type") == "finish"
        except (AttributeError, KeyError, TypeError):
            self._malformed(index)
            return
        call = self._open
        if call is None or call.turn != turn or call.step != step:
            call = self._begin(index, turn, step)
        call.chunks.append(chunk)
        call.positions.append(index)
        if finished:
            self._close(call, {"kind": "chunks", "chunks": call.chunks})

    def _deltas(self, index: int, data: dict[str, Any], chunks: list[Any], skip: int) -> None:
        if skip >= len(chunks):
            return
        call = self._open
        if call is None or call.turn != data["turn"] or call.step != data["step"]:
            call = self._begin(index + skip, data["turn"], data["step"])
        call.chunks += chunks[skip:]
        call.positions += range(index + skip, index + len(chunks))

    def _begin(self, index: int, turn: Any, step: Any) -> _Open:  # noqa: ANN401  any JSON
        """Open a call that the log did not announce."""
        self._leave("chunks of another step follow")
        self._open = _Open(turn=turn, step=step, place=index)
        return self._open

    def _asked(self, index: int, data: dict[str, Any]) -> None:
        self._leave("the next call follows")
        purpose: Purpose = "compaction" if data.get("purpose") == "compaction" else "turn"
        self._open = _Open(
            turn=data.get("turn"),
            step=data.get("step"),
            place=index,
            purpose=purpose,
            announced=True,
        )

    def _message(self, _: int, data: dict[str, Any]) -> None:
        if call := self._announced():
            kind = "hang" if data.get("interrupted") is True else "chunks"
            self._close(call, {"kind": kind, "chunks": call.chunks})

    def _turn_end(self, _: int, data: dict[str, Any]) -> None:
        if call := self._announced():
            reason = data.get("reason")
            kind = reason.get("kind") if type(reason) is dict else None
            if kind in ("aborted", "interrupted"):
                self._close(call, {"kind": "hang", "chunks": call.chunks})
            else:
                self._leave(f"the turn ended with {kind!r}")

    def _summary(self, index: int, data: dict[str, Any]) -> None:
        call = self._announced("compaction")
        if data.get("llmStreamCall") is not True:
            if not self._announced():
                self._leave("a compaction follows")
            return
        if call is None:
            self._leave("a compaction follows")
            turn, step = data.get("turn"), data.get("step")
            call = _Open(turn=turn, step=step, place=index, purpose="compaction")
        call.positions = []
        output = data.get("rawOutput")
        if type(output) is list and all(type(block) is dict for block in output):
            entry = {"kind": "chunks", "chunks": _summary_chunks(output, data)}
            self._close(call, entry, summary=index)
        else:
            what = "this compaction/summary says llmStreamCall, and has no rawOutput of blocks"
            self._close(call, None, summary=index, problem=what)

    def _compaction_end(self, _: int, data: dict[str, Any]) -> None:
        error = data.get("error")
        call = self._announced()
        if call and type(error) is dict and error.get("code") == "ABORTED":
            self._close(call, {"kind": "hang", "chunks": call.chunks})
        else:
            self._failed(error)

    def _retry(self, _: int, data: dict[str, Any]) -> None:
        self._failed(data.get("failure"))

    def _failed(self, failure: object) -> None:
        """End an open compaction, whose chunks are not logged, with the failure that is."""
        call = self._announced("compaction")
        if call and type(failure) is dict:
            finish = {"type": "finish", "reason": {"kind": "error", "failure": failure}}
            self._close(call, {"kind": "chunks", "chunks": [*call.chunks, finish]})

    def _malformed(self, index: int) -> None:
        self._leave("a record that can't be read follows")
        call = _Open(turn=None, step=None, place=index)
        self._close(call, None, problem="this assistant/chunk has no turn, step and chunk")

    def _end(self) -> None:
        if call := self._announced():
            self._close(call, {"kind": "hang", "chunks": call.chunks})
        self._leave("the log ends")

    def _announced(self, purpose: Purpose | None = None) -> _Open | None:
        """Return the open call, if the log said when it was asked for, and what for."""
        call = self._open
        return call if call and call.announced and purpose in (None, call.purpose) else None

    def _leave(self, what: str) -> None:
        """Make the open call, if there is one, a hole: nothing said how it ended."""
        if self._open:
            why = f"It has no finish chunk, and {what}."
            self._close(self._open, None, problem=why, unfinished=True)

    def _close(
        self,
        call: _Open,
        entry: ReplayEntry | None,
        *,
        summary: int | None = None,
        problem: str | None = None,
        unfinished: bool = False,
    ) -> None:
        self._open = None
        self.calls.append(
            DerivedCall(
                call=len(self.calls) + 1,
                turn=call.turn,
                step=call.step,
                purpose=call.purpose,
                entry=entry,
                place=call.place,
                positions=tuple(call.positions),
                summary=summary,
                announced=call.announced,
                problem=problem,
                unfinished=unfinished,
            )
        )


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
