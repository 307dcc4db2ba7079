"""What reading is tested with: records of a log, and logs made of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from hypothesis import strategies as st

Json = dict[str, Any]

HEADER: Json = {"type": "session", "version": 1, "id": "s1", "createdAt": 5}
FINISH: Json = {"type": "finish", "reason": {"kind": "stop"}}


class Told(Protocol):
    """Run `llm-replay`, and return what it tells on both streams."""

    def __call__(self, *argv: str, status: int = 0) -> str: ...


def text(piece: str, *, index: int = 0) -> Json:
    return {"type": "text-delta", "index": index, "text": piece}


def row(chunk: object, *, turn: int = 1, step: int = 1) -> Json:
    return event("assistant/chunk", turn=turn, step=step, chunk=chunk)


def rows(*chunks: object, turn: int = 1, step: int = 1) -> list[Json]:
    return [row(chunk, turn=turn, step=step) for chunk in chunks]


def event(kind: str, **data: object) -> Json:
    return {"type": kind, "data": data}


def asked(*, call: int = 1, turn: int = 1, step: int = 1, purpose: str = "turn") -> Json:
    data = {"turn": turn, "step": step, "call": call, "purpose": purpose}
    return {"type": "llm/call", "data": data, "ignorable": True}


def lines(*records: object, header: Json = HEADER) -> str:
    """Write a log as a session writes it: compact, one record a line."""
    written = [json.dumps(record, separators=(",", ":")) for record in (header, *records)]
    return "".join(f"{line}\n" for line in written)


def write_log(path: Path, *records: object, header: Json = HEADER) -> Path:
    path.write_text(lines(*records, header=header), "utf-8")
    return path


def chunks(*given: object) -> Json:
    return {"kind": "chunks", "chunks": list(given)}


def hang(*given: object) -> Json:
    return {"kind": "hang", "chunks": list(given)}


def persisted(records: Sequence[Json], *, start: int = 1000, gap: int = 10) -> list[Json]:
    """Give records their place in the log and in time."""
    return [
        {"type": record["type"], "seq": place, "time": start + gap * place, "data": record["data"]}
        for place, record in enumerate(records)
    ]


# Strings as they are in a log: lone surrogates too, which a stream cut in an emoji holds.
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=8).filter(
    lambda text: text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)

_floats = st.floats(allow_nan=False, allow_infinity=False)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | any_text | _floats,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)

_deltas = st.one_of(
    st.builds(lambda piece, index: text(piece, index=index), any_text, st.integers(0, 2)),
    st.builds(
        lambda piece, index: {"type": "reasoning-delta", "index": index, "text": piece},
        any_text,
        st.integers(0, 2),
    ),
    st.builds(
        lambda piece, id_, named: {
            "type": "tool-call-delta",
            "index": 3,
            "id": id_,
            **named,
            "argumentsDelta": piece,
        },
        any_text,
        st.sampled_from(["a", "b"]),
        st.sampled_from([{}, {"name": "bash"}, {"name": "read"}]),
    ),
)

_odd_chunks = st.one_of(
    st.just(FINISH),
    st.builds(lambda extra: {**text("x"), "more": extra}, json_values),
    st.builds(lambda value: {"type": "text-delta", "index": 0, "text": value}, json_values),
    st.dictionaries(any_text, json_values, max_size=3),
)


_leaps = st.sampled_from([2**53 - 1, -(2**53 - 1)])


@st.composite
def event_lists(draw: st.DrawFn, *, leaps: bool = True) -> list[Json]:
    """Persisted events: runs of deltas, odd chunks, other events, times in any order.

    With `leaps` from one end of time to the other.
    """
    found: list[Json] = []
    turn, step, time = 1, 1, 0
    for kind in draw(st.lists(st.sampled_from("rrroct"), max_size=12)):
        match kind:
            case "r":
                delta = draw(_deltas)
                field = "argumentsDelta" if "id" in delta else "text"
                pieces = draw(st.lists(any_text, min_size=1, max_size=6))
                new = [row({**delta, field: piece}, turn=turn, step=step) for piece in pieces]
            case "o":
                new = [row(draw(_odd_chunks), turn=turn, step=step)]
            case "c":
                new = [event(draw(st.sampled_from(["turn/end", "x", "llm/call"])))]
            case _:
                turn, step, new = turn + draw(st.integers(0, 1)), step + 1, []
        for record in new:
            time += draw(st.integers(-5, 5) | (_leaps if leaps else st.just(0)))
            time = max(-(2**53 - 1), min(time, 2**53 - 1))
            found.append(
                {"type": record["type"], "seq": len(found), "time": time, "data": record["data"]}
            )
    return found
