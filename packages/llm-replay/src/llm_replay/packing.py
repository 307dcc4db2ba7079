"""Packed rows: many deltas of one block stored as one record, and back. No I/O.

A row of kind `text-chunks`, `reasoning-chunks` or `tool-call-chunks` holds
parallel lists; expanding it gives exactly the events it was made of.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, count, pairwise
from typing import Any, TypeGuard

from llm_replay.exceptions import ReplayError

Row = dict[str, Any]

MINIMUM_RUN = 3
_SAFE = 2**53 - 1
_NUMBERS = {int, float}
_BARE = {"type", "data"}
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


class MalformedRowError(ReplayError):
    """A packed row is not exactly what a packed row is; the message says which part.

    `path` leads to that part, or to what it is missing in.
    """

    def __init__(self, what: str, *path: str | int) -> None:
        self.path = path
        super().__init__(what)


def expand_row(row: Row) -> list[Row]:
    """Return the events that a packed row stands for.

    The row must carry `seq0` and `time0`; a reader of projected logs fills them in.

    Raises:
        MalformedRowError: A part is missing, superfluous or of another type.
    """
    _check_row(row)
    data = row["data"]
    turn, step = data["turn"], data["step"]
    times = accumulate(data["dt"], initial=row["time0"])
    return [
        {
            "type": "assistant/chunk",
            "seq": seq,
            "time": int(time),
            "data": {"turn": turn, "step": step, "chunk": chunk},
        }
        for seq, time, chunk in zip(count(int(row["seq0"])), times, row_chunks(row), strict=False)
    ]


def count_members(row: Row) -> int:
    """Return how many events a packed row stands for, having looked at every part of it.

    Raises:
        MalformedRowError: A part is missing, superfluous or of another type.
    """
    _check_row(row)
    return len(row["data"]["dt"]) + 1


def row_chunks(row: Row) -> list[Row]:
    """Return the chunks alone of a packed row that is known to be well formed."""
    data = row["data"]
    index = data["index"]
    delta = PACKED[row["type"]]
    if delta != "tool-call-delta":
        return [{"type": delta, "index": index, "text": text} for text in data["texts"]]
    id_, pieces = data["id"], data["args"]
    if "name" not in data:
        return [
            {"type": delta, "index": index, "id": id_, "argumentsDelta": piece} for piece in pieces
        ]
    name = data["name"]
    return [
        {"type": delta, "index": index, "id": id_, "name": name, "argumentsDelta": piece}
        for piece in pieces
    ]


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


def _check_row(row: Row) -> None:
    """Look at every part of a packed row; what a projected one leaves out counts as 0."""
    if not _BARE <= row.keys() <= _ENVELOPE:
        what = "its keys must be exactly type, seq0, time0, data"
        raise MalformedRowError(what, *_odd(row, _ENVELOPE))
    seq0, time0, data = row.get("seq0", 0), row.get("time0", 0), row["data"]
    if not is_safe_integer(seq0) or seq0 < 0:
        raise MalformedRowError("seq0 must be an integer from 0 to 2^53-1", "seq0")
    if not is_safe_integer(time0):
        raise MalformedRowError("time0 must be an integer within ±(2^53-1)", "time0")
    _check_data(row["type"], data)
    gaps: list[int] = data["dt"]
    if seq0 + len(gaps) > _SAFE:
        raise MalformedRowError("the seq of its last member leaves ±(2^53-1)", "seq0")
    widest = max(max(gaps, default=0), -min(gaps, default=0))
    if widest > _SAFE:
        raise _bad_gap(gaps)
    if abs(time0) + widest * len(gaps) > _SAFE:  # then, and only then, look at each
        _check_times(accumulate(gaps, initial=time0))


def _check_data(tag: str, data: object) -> None:
    if type(data) is not dict:
        raise MalformedRowError("data must be an object", "data")
    tool = tag == "tool-call-chunks"
    if data.keys() - {"name"} != _TOOL_KEYS if tool else data.keys() != _TEXT_KEYS:
        expected = "turn, step, index, dt, id, name?, args" if tool else ", ".join(_TEXT_ORDER)
        odd = _odd(data, {*_TOOL_KEYS, "name"} if tool else _TEXT_KEYS)
        raise MalformedRowError(f"data must have exactly the keys {expected}", "data", *odd)
    if not {type(data["turn"]), type(data["step"]), type(data["index"])} <= _NUMBERS:
        key = next(key for key in ("turn", "step", "index") if type(data[key]) not in _NUMBERS)
        raise MalformedRowError("turn, step and index must be numbers", "data", key)
    if tool and not (type(data["id"]) is str and type(data.get("name", "")) is str):
        key = "name" if type(data["id"]) is str else "id"
        raise MalformedRowError("id, and name where there is one, must be strings", "data", key)
    field = "args" if tool else "texts"
    members, gaps = data[field], data["dt"]
    if type(members) is not list or set(map(type, members)) != {str}:
        what = f"{field} must be a list of strings, at least one"
        raise MalformedRowError(
            what, "data", field, *_first(members, lambda item: type(item) is str)
        )
    if type(gaps) is not list or not _are_integers(gaps):
        raise _bad_gap(gaps)
    if len(gaps) != len(members) - 1:
        what = f"dt has {len(gaps)} gaps for {len(members)} members"
        raise MalformedRowError(what, "data", "dt")


def _are_integers(numbers: list[Any]) -> bool:
    kinds = set(map(type, numbers))
    return kinds <= {int} or (kinds <= _NUMBERS and all(map(is_safe_integer, numbers)))


def _check_times(times: Iterable[float]) -> None:
    for place, time in enumerate(times):
        if not is_safe_integer(time):
            what = "the time of a member leaves ±(2^53-1)"
            raise MalformedRowError(what, "data", "dt", place - 1)


def _bad_gap(gaps: object) -> MalformedRowError:
    what = "dt must be a list of integers within ±(2^53-1)"
    return MalformedRowError(what, "data", "dt", *_first(gaps, is_safe_integer))


def _odd(record: Row, known: set[str]) -> list[str]:
    """Return the first key that is one too many, if none is missing only."""
    return [key for key in record if key not in known][:1]


def _first(members: object, is_fine: Callable[[object], bool]) -> list[int]:
    """Return the index of the first member that is not fine, if there are members."""
    listed = members if type(members) is list else []
    return [place for place, member in enumerate(listed) if not is_fine(member)][:1]


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
