"""Packed rows: many deltas of one block stored as one record, and back. No I/O.

A row of kind `text-chunks`, `reasoning-chunks` or `tool-call-chunks` holds
parallel lists; expanding it gives exactly the events it was made of.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

Row = dict[str, Any]

MINIMUM_RUN = 3
_SAFE = 2**53 - 1
_ENVELOPE = {"type", "seq0", "time0", "data"}
_TEXT_ORDER = ("turn", "step", "index", "dt", "texts")
_TEXT_KEYS = set(_TEXT_ORDER)
_TOOL_KEYS = {"turn", "step", "index", "dt", "id", "args"}
_PROJECTED_AWAY = ("seq", "time", "seq0", "time0")

PACKED = {
    "text-chunks": "text-delta",
    "reasoning-chunks": "reasoning-delta",
    "tool-call-chunks": "tool-call-delta",
}
"""Tag of a packed row → type of the chunks in it."""

_TAG = {delta: tag for tag, delta in PACKED.items()}


class MalformedRowError(ValueError):
    """A packed row is not exactly what a packed row is; the message says which part."""


def expand_row(row: Row) -> list[Row]:
    """Return the events that a packed row stands for.

    The row must carry `seq0` and `time0`; a reader of projected logs fills them in.

    Raises:
        MalformedRowError: A part is missing, superfluous or of another type.
    """
    seq0, times = _check_envelope(row)
    data = row["data"]
    turn, step = data["turn"], data["step"]
    return [
        {
            "type": "assistant/chunk",
            "seq": seq0 + k,
            "time": int(times[k]),
            "data": {"turn": turn, "step": step, "chunk": chunk},
        }
        for k, chunk in enumerate(row_chunks(row))
    ]


def row_chunks(row: Row) -> list[Row]:
    """Return the chunks of a packed row that is known to be well formed."""
    data = row["data"]
    index = data["index"]
    delta = PACKED[row["type"]]
    if delta != "tool-call-delta":
        return [{"type": delta, "index": index, "text": text} for text in data["texts"]]
    start = {"type": delta, "index": index, "id": data["id"]}
    if "name" in data:
        start["name"] = data["name"]
    return [{**start, "argumentsDelta": piece} for piece in data["args"]]


def check_row(row: Row) -> None:
    """Refuse a packed row that does not say exactly what it has to.

    Raises:
        MalformedRowError: A part is missing, superfluous or of another type.
    """
    _check_envelope(row)


def pack_events(events: Iterable[Row]) -> list[Row]:
    """Return the canonical layout of a log's events: every run of deltas as one row.

    Only events of exactly the known shape join a run, so unknown fields cost
    compression and never data.
    """
    rows: list[Row] = []
    for run in _runs(events):
        if len(run) < MINIMUM_RUN:
            rows.extend(run)
        else:
            rows.append(_pack(run))
    return rows


def project_row(row: Row) -> Row:
    """Return the row without its place in time; nested keys of the same names stay."""
    return {key: value for key, value in row.items() if key not in _PROJECTED_AWAY}


def is_safe_integer(value: object) -> TypeGuard[int | float]:
    """Say whether a JSON number is an integer that every reader takes exactly."""
    if type(value) is int:
        return -_SAFE <= value <= _SAFE
    return type(value) is float and value.is_integer() and -_SAFE <= value <= _SAFE


def _check_envelope(row: Row) -> tuple[int, list[int]]:
    """Return first seq and all times of a packed row, having looked at every part of it."""
    if row.keys() != _ENVELOPE:
        raise MalformedRowError("its keys must be exactly type, seq0, time0, data")
    seq0, time0, data = row["seq0"], row["time0"], row["data"]
    if not is_safe_integer(seq0) or seq0 < 0:
        raise MalformedRowError("seq0 must be an integer from 0 to 2^53-1")
    if not is_safe_integer(time0):
        raise MalformedRowError("time0 must be an integer within ±(2^53-1)")
    members = _check_data(row["type"], data)
    if seq0 + members - 1 > _SAFE:
        raise MalformedRowError("the seq of its last member leaves ±(2^53-1)")
    times = list(accumulate(data["dt"], initial=int(time0)))
    if max(times) > _SAFE or min(times) < -_SAFE:
        raise MalformedRowError("the time of a member leaves ±(2^53-1)")
    return int(seq0), times


def _check_data(tag: str, data: object) -> int:
    """Return how many members the payload of a packed row has."""
    if type(data) is not dict:
        raise MalformedRowError("data must be an object")
    tool = tag == "tool-call-chunks"
    if data.keys() - {"name"} != _TOOL_KEYS if tool else data.keys() != _TEXT_KEYS:
        expected = "turn, step, index, dt, id, name?, args" if tool else ", ".join(_TEXT_ORDER)
        raise MalformedRowError(f"data must have exactly the keys {expected}")
    if not all(type(data[key]) in (int, float) for key in ("turn", "step", "index")):
        raise MalformedRowError("turn, step and index must be numbers")
    if tool and not (type(data["id"]) is str and type(data.get("name", "")) is str):
        raise MalformedRowError("id, and name where there is one, must be strings")
    field = "args" if tool else "texts"
    members, gaps = data[field], data["dt"]
    if type(members) is not list or set(map(type, members)) != {str}:
        raise MalformedRowError(f"{field} must be a list of strings, at least one")
    if type(gaps) is not list or not _all_safe(gaps):
        raise MalformedRowError("dt must be a list of integers within ±(2^53-1)")
    if len(gaps) != len(members) - 1:
        raise MalformedRowError(f"dt has {len(gaps)} gaps for {len(members)} members")
    return len(members)


def _all_safe(numbers: list[int]) -> bool:
    """Do what `all(map(is_safe_integer, numbers))` does, faster for the common list."""
    if set(map(type, numbers)) == {int}:
        return max(map(abs, numbers)) <= _SAFE
    return all(map(is_safe_integer, numbers))


def _runs(events: Iterable[Row]) -> Iterator[list[Row]]:
    """Cut events into runs that may be one row; what can't be packed is a run of its own."""
    run: list[Row] = []
    key: tuple[object, ...] | None = None
    for event in events:
        joins = _run_key(event)
        if run and joins is not None and joins == key and _follows(run[-1], event):
            run.append(event)
            continue
        if run:
            yield run
        run, key = [event], joins
    if run:
        yield run


def _run_key(event: Row) -> tuple[object, ...] | None:
    """Return what all members of a run have in common; `None` for an unknown shape."""
    if event.keys() != {"type", "seq", "time", "data"} or event["type"] != "assistant/chunk":
        return None
    data = event["data"]
    if type(data) is not dict or data.keys() != {"turn", "step", "chunk"}:
        return None
    chunk = data["chunk"]
    if type(chunk) is not dict or not _is_whole_delta(chunk):
        return None
    seq, numbers = event["seq"], (data["turn"], data["step"], chunk["index"])
    if set(map(type, (seq, event["time"], *numbers))) != {int} or seq < 0:
        return None
    if not (is_safe_integer(seq) and is_safe_integer(event["time"])):
        return None
    return (chunk["type"], *numbers, chunk.get("id"), chunk.get("name"))


def _is_whole_delta(chunk: Row) -> bool:
    """Say whether a chunk is a delta of exactly the known shape."""
    kind = chunk.get("type")
    if kind in ("text-delta", "reasoning-delta"):
        return chunk.keys() == {"type", "index", "text"} and type(chunk["text"]) is str
    return (
        kind == "tool-call-delta"
        and chunk.keys() - {"name"} == {"type", "index", "id", "argumentsDelta"}
        and all(type(chunk[key]) is str for key in chunk.keys() - {"type", "index"})
    )


def _follows(previous: Row, event: Row) -> bool:
    gap = event["time"] - previous["time"]
    return event["seq"] == previous["seq"] + 1 and is_safe_integer(gap)


def _pack(run: list[Row]) -> Row:
    first = run[0]
    chunk = first["data"]["chunk"]
    times = [event["time"] for event in run]
    data = {"turn": first["data"]["turn"], "step": first["data"]["step"], "index": chunk["index"]}
    data["dt"] = [after - before for before, after in pairwise(times)]
    if chunk["type"] == "tool-call-delta":
        data |= {key: chunk[key] for key in ("id", "name") if key in chunk}
        data["args"] = [event["data"]["chunk"]["argumentsDelta"] for event in run]
    else:
        data["texts"] = [event["data"]["chunk"]["text"] for event in run]
    return {"type": _TAG[chunk["type"]], "seq0": first["seq"], "time0": first["time"], "data": data}
