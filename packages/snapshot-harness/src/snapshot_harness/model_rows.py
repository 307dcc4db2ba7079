"""Which records of a log are the model's words, and how those are normalized. No I/O.

Model rows are input: the next run is fed with them. Only the run's roots and
literal braces are changed in them, so that serving can put both back.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from llm_replay.script import derive_calls
from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots, normalize_chunks, normalize_value
from llm_replay.values import map_strings
from snapshot_harness.json_value import Json

PLACEHOLDER = "{{fromRequest:"

_LITERAL_ROOT = "/\x00cwd"
"""What `{{cwd}}` of a literal log is served as: no text of a log contains it."""

_LITERAL = Roots(cwd=_LITERAL_ROOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRows:
    """A log's model rows, normalized, by their index among its events.

    `chunks` are whole events, `summaries` the `rawOutput` of compactions.
    `chosen` are the ids of tool calls that the model itself chose.
    """

    chunks: dict[int, dict[str, Any]]
    summaries: dict[int, Any]
    chosen: frozenset[str]


def model_rows(
    log: SessionLog,
    *,
    roots: Roots | None,
    output: AbstractSet[int] = frozenset(),
) -> ModelRows:
    """Return what of a log is input.

    With `roots` the log is that of a live run. Without, it is a fixture: one
    with `tokens: 1` is kept as it is, a literal one is taken as it would be served.
    `output` holds the places of rows that an override served: they are what the run
    made of hand-written entries.
    """
    change = _change(log, roots)
    chunks: dict[int, dict[str, Any]] = {}
    chosen: set[str] = set()
    for call in derive_calls(log.events):
        if not output.isdisjoint(call.positions):
            continue
        told = [log.events[place]["data"]["chunk"] for place in call.positions]
        chosen.update(_ids(told))
        for place, chunk in zip(call.positions, change(told), strict=True):
            event = log.events[place]
            chunks[place] = {**event, "data": {**event["data"], "chunk": chunk}}
    summaries: dict[int, Any] = {}
    for place, event in enumerate(log.events):
        if place not in output and is_summary(event):
            raw = event["data"]["rawOutput"]
            chosen.update(_ids(raw if isinstance(raw, list) else ()))
            summaries[place] = _change_value(log, roots, raw)
    return ModelRows(chunks=chunks, summaries=summaries, chosen=frozenset(chosen))


def seed_length(log: SessionLog) -> int:
    """Return how many leading events the session inherited."""
    return max(0, int(log.header.seed_length))


def served_by_override(
    log: SessionLog, overridden: Collection[int], *, primary: bool = False
) -> frozenset[int]:
    """Return the places of the rows that hold what an override served.

    Replay takes what the primary inherited as calls of its own.
    """
    if not overridden:
        return frozenset()
    calls = derive_calls(log.events, seed_length=0 if primary else seed_length(log))
    return frozenset(
        place
        for call in calls
        if call.call in overridden
        for place in (*call.positions, *(() if call.summary is None else (call.summary,)))
    )


def is_summary(event: dict[str, Any]) -> bool:
    """Tell whether an event is a compaction's summary, which holds what the model said."""
    data = event.get("data")
    return (
        event.get("type") == "compaction/summary" and isinstance(data, dict) and "rawOutput" in data
    )


def _ids(chunks: Iterable[Any]) -> Iterator[str]:
    for chunk in chunks:
        for part in (chunk, chunk.get("block")) if isinstance(chunk, dict) else ():
            if isinstance(part, dict) and part.get("type") in {"tool-call", "tool-call-delta"}:
                name = part.get("id")
                if isinstance(name, str):
                    yield name


def _change(log: SessionLog, roots: Roots | None) -> Callable[[list[Any]], list[Any]]:
    if roots is not None:
        return lambda chunks: normalize_chunks(chunks, roots)
    return list if log.header.tokens else _from_literal


def _change_value(log: SessionLog, roots: Roots | None, raw: Json) -> Json:
    if roots is not None:
        return normalize_value(raw, roots)
    if log.header.tokens:
        return raw
    served = map_strings(raw, _serve_literal)
    return map_strings(normalize_value(served, _LITERAL), _keep_placeholder)


def _from_literal(chunks: list[Any]) -> list[Any]:
    served = [map_strings(chunk, _serve_literal) for chunk in chunks]
    return [map_strings(chunk, _keep_placeholder) for chunk in normalize_chunks(served, _LITERAL)]


def _serve_literal(text: str) -> str:
    return text.replace("{{cwd}}", _LITERAL_ROOT)


def _keep_placeholder(text: str) -> str:
    """Leave a placeholder live: it stands for what only the run knows."""
    return text.replace("{{lit}}fromRequest:", PLACEHOLDER)
