"""Whether the agent logged exactly what it was served. No I/O.

Refresh takes everything from its run, so it must prove that the model's part
did not change on the way through the agent.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.session_log import SessionLog
from snapshot_harness.fixtures import Fixture
from snapshot_harness.model_rows import seed_length
from snapshot_harness.normalize import Normalized, NormalizedLog
from snapshot_harness.values import differences, shown

Key: TypeAlias = tuple[str, int]
"""A call: its session's lineage, or place where either side has none, and its number."""

_SUMMARY_INPUT = ("rawOutput", "usage", "llmStreamCall")


def unlogged(
    fixture: Fixture, expected: Normalized, live: Sequence[SessionLog], actual: Normalized
) -> list[str]:
    """Return what the agent did not log as it was served, the first difference of each call."""
    known = all(log.header.lineage is not None for log in [*fixture.logs, *live])
    there = dict(_rows(fixture.logs, expected.logs, fixture.overridden, known=known))
    here = dict(_rows(live, actual.logs, fixture.overridden, known=known))
    problems = []
    for key, rows in there.items():
        if key not in here:
            problems.append(f"{_name(key)} is not in the agent's log")
            continue
        problems += _difference(key, rows, here[key])
    problems += [
        f"{_name(key)} is in the agent's log, and was not served"
        for key in here
        if key not in there
    ]
    return [f"the agent did not log what it was served: {problem}" for problem in problems]


def _difference(key: Key, rows: Sequence[Any], logged: Sequence[Any]) -> Iterator[str]:
    for path, left, right in differences(list(rows), list(logged)):
        yield (
            f"{_name(key)}, chunk {path}\n"
            f"  served: {shown(left, right)}\n"
            f"  logged: {shown(right, left)}"
        )
        return


def _rows(
    logs: Sequence[SessionLog],
    normalized: Sequence[NormalizedLog],
    overridden: Mapping[int, Collection[int]],
    *,
    known: bool,
) -> Iterator[tuple[Key, list[Any]]]:
    """Yield the chunks of each call that no override serves; `known`: by lineage."""
    for place, (log, done) in enumerate(zip(logs, normalized, strict=True)):
        session = str(log.header.lineage) if known else f"number {place + 1}"
        # The primary's inherited calls are its own, as replay takes them.
        seed = seed_length(log) if place else 0
        for call in derive_calls(log.events, seed_length=seed):
            if call.call not in overridden.get(place, ()):
                yield (session, call.call), _input_of(call, done)


def _input_of(call: DerivedCall, log: NormalizedLog) -> list[Any]:
    rows = [log.events[place]["data"]["chunk"] for place in call.positions]
    if call.summary is not None:
        data = log.events[call.summary]["data"]
        rows.append({key: data[key] for key in _SUMMARY_INPUT if key in data})
    return rows


def _name(key: Key) -> str:
    session, call = key
    return f"model call {call} of session {session}"
