"""How long to wait before each chunk: a fixed time, or as long as the recording did."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from llm_replay.config import ReplayConfig
from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.session_log import read_session_log

Pause: TypeAlias = Callable[[int], float]
"""Seconds to wait before the chunk at a position of a call."""

Pace: TypeAlias = Callable[[int, int], Pause | None]
"""The pauses of a call, by the index of its script and its place there, both from 0."""


def pace_of(config: ReplayConfig) -> Pace | None:
    """Return how `config` wants calls to be paced; `None`: as fast as they are read."""
    if config.pace_ms:
        seconds = config.pace_ms / 1000
        return lambda _script, _place: lambda _position: seconds
    return _recorded(config) if config.pace == "recorded" else None


def _recorded(config: ReplayConfig) -> Pace:
    files = [config.file, *config.child_files]
    gaps = {index: _gaps_of_file(index, Path(file)) for index, file in enumerate(files) if file}

    def pace(script: int, place: int) -> Pause | None:
        calls = gaps.get(script, [])
        return _pause(calls[place]) if place < len(calls) and calls[place] else None

    return pace


def _pause(gaps: Sequence[float]) -> Pause:
    return lambda position: gaps[position] if position < len(gaps) else 0.0


def _gaps_of_file(index: int, file: Path) -> list[list[float]]:
    if not file.exists():  # an override alone can be the whole script
        return []
    log = read_session_log(file.read_bytes(), name=str(file))
    calls = derive_calls(log.events, seed_length=log.header.seed_length if index else 0)
    return [_gaps_of_call(call, log.events) for call in calls]


def _gaps_of_call(call: DerivedCall, events: Sequence[dict[str, Any]]) -> list[float]:
    """Return the seconds before each chunk; the first one's count from the request, if logged."""
    if not call.positions:
        return []
    asked = call.positions[0]
    while call.announced and events[asked]["type"] != "llm/call":
        asked -= 1
    times = [events[place]["time"] for place in (asked, *call.positions)]
    numbers = [time if isinstance(time, int | float) else 0 for time in times]
    return [max(0, later - earlier) / 1000 for earlier, later in pairwise(numbers)]
