"""The canonical order of a transcript: frames of parallel calls, sorted into lanes. No I/O.

Calls of one batch run side by side, so their frames interleave by chance. Each
call's own frames keep their order; everything that names no call keeps its place.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Frame: TypeAlias = dict[str, Any]
Call: TypeAlias = tuple[str, str]
"""A call's key: its session and its id."""


def canonical_order(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames with each run of tool frames sorted into lanes.

    A lane holds a top-level call and all that it spawned, lanes stand in order
    of first announcement in the whole transcript. Inside a lane the calls that
    it spawned are lanes again, and its own frames are barriers.
    """
    calls = [call_of(frame) for frame in frames]
    tree = _Tree(frames, calls)
    order: list[int] = []
    run: list[int] = []
    for place, call in enumerate(calls):
        if call is None:
            order.extend(tree.sort(run, depth=0))
            order.append(place)
            run = []
        else:
            run.append(place)
    order.extend(tree.sort(run, depth=0))
    return [frames[place] for place in order]


def call_of(frame: Frame) -> Call | None:
    """Return the call that a frame names: itself, in its permission request or in `_meta`."""
    params = frame.get("params")
    if not isinstance(params, dict):
        return None
    name = _first_text(params, "toolCallId")
    session = params.get("sessionId")
    return None if name is None else (session if isinstance(session, str) else "", name)


def _holders(params: Frame) -> Iterator[Frame]:
    """Yield the objects of a frame in which a call may be named, the nearest first."""
    owners = [params.get("update"), params.get("toolCall"), params]
    for owner in owners:
        if isinstance(owner, dict):
            yield owner
    for owner in owners:
        if isinstance(owner, dict) and isinstance(owner.get("_meta"), dict):
            yield owner["_meta"]


def _first_text(params: Frame, key: str) -> str | None:
    """Return what a frame says under `key`, from the nearest object that says it."""
    said = (holder.get(key) for holder in _holders(params))
    return next((value for value in said if isinstance(value, str)), None)


class _Tree:
    """Which call spawned which, and in what order they were first seen."""

    def __init__(self, frames: Sequence[Frame], calls: Sequence[Call | None]) -> None:
        self._calls = calls
        self._announced: dict[Call, int] = {}
        self._spawner: dict[Call, Call] = {}
        for place, call in enumerate(calls):
            if call is None:
                continue
            self._announced.setdefault(call, place)
            spawner = _first_text(frames[place]["params"], "parentToolCallId")
            if spawner is not None:
                self._spawner.setdefault(call, (call[0], spawner))
        self._lineage = {call: self._line(call) for call in self._announced}
        self._first_seen: dict[Call, int] = {}
        for call, place in self._announced.items():
            for lane in self._lineage[call]:
                self._first_seen.setdefault(lane, place)

    def sort(self, run: Sequence[int], *, depth: int) -> list[int]:
        """Return the places of one run, lane after lane, at `depth` below the top."""
        lanes: dict[Call, list[int]] = {}
        for place in run:
            lanes.setdefault(self._line_at(place)[depth], []).append(place)
        ordered = sorted(lanes, key=self._first_seen.__getitem__)
        return [place for lane in ordered for place in self._inside(lanes[lane], depth=depth)]

    def _inside(self, lane: Sequence[int], *, depth: int) -> list[int]:
        order: list[int] = []
        run: list[int] = []
        for place in lane:
            if len(self._line_at(place)) > depth + 1:
                run.append(place)
                continue
            order.extend(self.sort(run, depth=depth + 1))
            order.append(place)
            run = []
        order.extend(self.sort(run, depth=depth + 1))
        return order

    def _line_at(self, place: int) -> tuple[Call, ...]:
        call = self._calls[place]
        return self._lineage[call] if call is not None else ()

    def _line(self, call: Call) -> tuple[Call, ...]:
        """Return the calls from the top-level one down to `call`."""
        line = [call]
        while (spawner := self._spawner.get(line[-1])) is not None and spawner not in line:
            line.append(spawner)
        return tuple(reversed(line))
