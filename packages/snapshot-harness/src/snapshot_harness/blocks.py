"""Deltas that don't join to what their block ended with: one of the two was edited. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.session_log import SessionLog
from snapshot_harness.causes import Cause
from snapshot_harness.places import log_places
from snapshot_harness.records import session_name
from snapshot_harness.values import first_difference, shown

_FIELDS = {
    "text-delta": ("text", "text"),
    "reasoning-delta": ("reasoning", "text"),
    "tool-call-delta": ("tool-call", "argumentsDelta"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A block whose deltas say one thing and its end another.

    `place` is the event of the delta where they part; `key` its field.
    """

    index: str
    place: int
    key: str
    joined: str
    ended: str

    @property
    def what(self) -> str:
        """The mistake in words."""
        return f"the deltas of block {self.index} don't join to its block-end"


@dataclass(slots=True)
class _Block:
    kind: str
    key: str
    deltas: list[tuple[int, str]] = field(default_factory=list)
    """The events of its deltas, and their texts."""


def mismatches(log: SessionLog, call: DerivedCall) -> Iterator[Mismatch]:
    """Yield the blocks of a call whose deltas don't join to their end."""
    blocks: dict[str, _Block] = {}
    for place in call.positions:
        chunk = log.events[place]["data"]["chunk"]
        kind = chunk.get("type")
        index = repr(chunk.get("index"))
        if kind in _FIELDS:
            of, key = _FIELDS[kind]
            block = blocks.setdefault(index, _Block(of, key))
            text = chunk.get(key)
            if block.kind == of and isinstance(text, str):
                block.deltas.append((place, text))
        elif kind == "block-end" and index in blocks:
            ended = _text_of(chunk.get("block"))
            deltas, key = blocks[index].deltas, blocks[index].key
            joined = "".join(text for _, text in deltas)
            if ended is None or not deltas:
                continue
            if ended != joined:
                at = _delta_at(deltas, first_difference(joined, ended))
                yield Mismatch(index=index, place=at, key=key, joined=joined, ended=ended)
            deltas.clear()


def block_causes(logs: Sequence[SessionLog]) -> list[Cause]:
    """Return what of the model's rows contradicts itself, as causes of whatever followed."""
    return [
        _cause(log, number, one)
        for number, log in enumerate(logs)
        for call in derive_calls(log.events)
        for one in mismatches(log, call)
    ]


def _cause(log: SessionLog, number: int, one: Mismatch) -> Cause:
    at = log_places(log.events)[one.place + 1]
    return Cause(
        surface="log",
        file=log.name,
        session=session_name(log.header.raw, number),
        turn=at.turn,
        step=at.step,
        line=log.lines[one.place],
        path=f"data.chunk.{one.key}",
        expected=shown(one.ended, one.joined),
        actual=shown(one.joined, one.ended),
        message=f"{one.what}: the fixture was edited",
    )


def _delta_at(deltas: Sequence[tuple[int, str]], offset: int) -> int:
    """Return the event of the delta that holds a place of the joined text, or of the last."""
    for place, text in deltas:
        if offset < len(text):
            return place
        offset -= len(text)
    return deltas[-1][0]


def _text_of(block: object) -> str | None:
    """Return the text that the deltas of a block must join to."""
    if not isinstance(block, dict):
        return None
    text = block.get("arguments" if block.get("type") == "tool-call" else "text")
    return text if isinstance(text, str) else None
