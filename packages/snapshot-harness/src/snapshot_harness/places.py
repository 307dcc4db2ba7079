"""Where in a run a record stands: its turn and step, and what kind of record it is. No I/O."""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from snapshot_harness.order import call_of

_CALL_PLACE = re.compile(r"(\d+)\.(\d+)\.\d+")
"""A call of the session itself; a child's has another turn of its own."""
_SESSION = re.compile(r"\{\{session:(\d+)\}\}")


@dataclass(frozen=True, slots=True)
class Place:
    """A turn and a step, as far as they are known, and for a frame its session."""

    turn: int | None = None
    step: int | None = None
    session: str | None = None


Kind: TypeAlias = Callable[[dict[str, Any], Place], Hashable]


def log_places(events: Sequence[dict[str, Any]]) -> list[Place]:
    """Return the place of the header, then of each event."""
    turn: int | None = None
    step: int | None = None
    places = [Place()]
    for event in events:
        data = event.get("data")
        if isinstance(data, dict):
            own_turn, own_step = data.get("turn"), data.get("step")
            if type(own_turn) is int:
                step = None if own_turn != turn else step
                turn = own_turn
            if type(own_step) is int:
                step = own_step
        places.append(Place(turn, step))
    return places


def frame_places(frames: Sequence[dict[str, Any]]) -> list[Place]:
    """Return the place of each frame: by its call, else by the prompts answered so far."""
    turns: dict[str | None, int] = {}
    session: str | None = None
    places = []
    for frame in frames:
        own = _session_of(frame)
        call = call_of(frame)
        match = _CALL_PLACE.fullmatch(call[1]) if call is not None else None
        if own is not None:
            session = own
            turns.setdefault(session, 1)
        if match is not None:
            turns[session] = int(match[1])
            places.append(Place(int(match[1]), int(match[2]), session))
            continue
        result = frame.get("result")
        stops = isinstance(result, dict) and "stopReason" in result
        inside = own is not None or (stops and session is not None)
        places.append(Place(turns.get(session), None, session) if inside else Place())
        if stops:
            turns[session] = turns.get(session, 1) + 1
    return places


def _session_of(frame: dict[str, Any]) -> str | None:
    params = frame.get("params")
    name = params.get("sessionId") if isinstance(params, dict) else None
    if not isinstance(name, str):
        return None
    token = _SESSION.fullmatch(name)
    return token[1] if token is not None else name


def _log_kind(event: dict[str, Any], place: Place) -> Hashable:
    data = event.get("data")
    chunk = data.get("chunk") if isinstance(data, dict) else None
    part = (chunk.get("type"), chunk.get("index")) if isinstance(chunk, dict) else None
    call = data.get("callId") if isinstance(data, dict) else None
    return (repr(event.get("type")), place, repr(part), call if isinstance(call, str) else None)


def _log_type(event: dict[str, Any], _: Place) -> Hashable:
    return repr(event.get("type"))


def _frame_kind(frame: dict[str, Any], place: Place) -> Hashable:
    return (_frame_update(frame, place), repr(call_of(frame)))


def _frame_update(frame: dict[str, Any], place: Place) -> Hashable:
    params = frame.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    kind = update.get("sessionUpdate") if isinstance(update, dict) else None
    return (_frame_method(frame, place), repr(kind))


def _frame_method(frame: dict[str, Any], _: Place) -> Hashable:
    return (repr(frame.get("method")), "id" in frame and "method" not in frame)


LOG_KINDS: tuple[Kind, ...] = (_log_kind, _log_type)
"""What stays the same of an event when its content changes, the closest first."""

FRAME_KINDS: tuple[Kind, ...] = (_frame_kind, _frame_update, _frame_method)
"""What stays the same of a frame when its content changes, the closest first."""
