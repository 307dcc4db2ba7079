"""Which records of a log are the model's words, and how those are normalized. No I/O.

Model rows are input: the next run is fed with them. Only the run's roots and
literal braces are changed in them, so that serving can put both back.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from llm_replay.script import DerivedCall, derive_calls
from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots, normalize_chunks, normalize_value

_LITERAL_ROOT = "/\x00cwd"
"""What `{{cwd}}` of a literal log is served as: no text of a log contains it."""

_PLACEHOLDER = "{{fromRequest:"


def model_calls(log: SessionLog, *, overridden: Collection[int] = ()) -> list[DerivedCall]:
    """Return the calls whose rows are input, inherited ones among them.

    `overridden` numbers the log's own calls that the sidecar serves: their rows
    are what the run made of hand-written entries, and so output.
    """
    calls = derive_calls(log.events)
    if not overridden:
        return calls
    own = derive_calls(log.events, seed_length=seed_length(log))
    served = {position for call in own if call.call in overridden for position in call.positions}
    return [call for call in calls if not served.intersection(call.positions)]


def seed_length(log: SessionLog) -> int:
    """Return how many leading events the session inherited."""
    return max(0, int(log.header.seed_length))


def normalize_model_rows(
    log: SessionLog, calls: Sequence[DerivedCall], roots: Roots | None
) -> dict[int, dict[str, Any]]:
    """Return the model rows of a log, normalized, by their index among its events.

    With `roots` the log is that of a live run; without, it is a fixture: one
    with `tokens: 1` is kept as it is, a literal one is taken as it would be served.
    """
    if roots is None and log.header.tokens:
        return {place: log.events[place] for call in calls for place in call.positions}
    rows: dict[int, dict[str, Any]] = {}
    for call in calls:
        chunks = [log.events[place]["data"]["chunk"] for place in call.positions]
        for place, chunk in zip(call.positions, _chunks(chunks, roots), strict=True):
            event = log.events[place]
            rows[place] = {**event, "data": {**event["data"], "chunk": chunk}}
    return rows


def normalize_summary(event: dict[str, Any], *, tokens: bool, roots: Roots | None) -> Any:  # noqa: ANN401  JSON
    """Return the `rawOutput` of a `compaction/summary`, normalized like any model row."""
    raw = event["data"]["rawOutput"]
    if roots is None and tokens:
        return raw
    return _from_literal(raw) if roots is None else normalize_value(raw, roots)


def chosen_ids(log: SessionLog, calls: Sequence[DerivedCall]) -> Iterator[str]:
    """Yield the ids of tool calls that the model itself chose."""
    for call in calls:
        for place in call.positions:
            chunk = log.events[place]["data"]["chunk"]
            yield from _call_id(chunk)
            yield from _call_id(chunk.get("block"))
    for event in log.events:
        raw = event["data"].get("rawOutput") if is_summary(event) else None
        for block in raw if isinstance(raw, list) else ():
            yield from _call_id(block)


def is_summary(event: dict[str, Any]) -> bool:
    """Tell whether an event is a compaction's summary, which holds what the model said."""
    data = event.get("data")
    return (
        event.get("type") == "compaction/summary" and isinstance(data, dict) and "rawOutput" in data
    )


def _call_id(value: object) -> Iterator[str]:
    if isinstance(value, dict) and value.get("type") in {"tool-call", "tool-call-delta"}:
        name = value.get("id")
        if isinstance(name, str):
            yield name


def _chunks(chunks: list[Any], roots: Roots | None) -> list[Any]:
    if roots is not None:
        return list(normalize_chunks(chunks, roots))
    served = [_map_text(chunk, _serve_literal) for chunk in chunks]
    return [_map_text(chunk, _keep_placeholder) for chunk in normalize_chunks(served, _LITERAL)]


def _from_literal(value: Any) -> Any:  # noqa: ANN401  JSON
    served = _map_text(value, _serve_literal)
    return _map_text(normalize_value(served, _LITERAL), _keep_placeholder)


def _serve_literal(text: str) -> str:
    return text.replace("{{cwd}}", _LITERAL_ROOT)


def _keep_placeholder(text: str) -> str:
    """Leave a placeholder live: it stands for what only the run knows."""
    return text.replace("{{lit}}fromRequest:", _PLACEHOLDER)


def _map_text(value: Any, change: Any) -> Any:  # noqa: ANN401  JSON
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_text(child, change) for key, child in value.items()}
    if isinstance(value, list):
        return [_map_text(child, change) for child in value]
    return value


_LITERAL = Roots(cwd=_LITERAL_ROOT, home=None, tmp=None, sessions=None, spill=None, run=None)
