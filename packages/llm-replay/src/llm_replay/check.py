"""Everything that keeps a scenario's logs from being replayed, all at once."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.exceptions import OverrideError, SessionLogError
from llm_replay.inventory import Inventory
from llm_replay.jsonl import as_lines, lossy_parts, numbered_objects
from llm_replay.override import (
    Patches,
    Replacement,
    SessionOverride,
    apply_override,
    repeats_log,
)
from llm_replay.packing import PACKED, MalformedRowError, count_members
from llm_replay.script import lawless, lawless_rows, read_override, unreadable
from llm_replay.session_log import SessionLog, malformed, read_header, read_session_log
from llm_replay.values import shown


def problems_of(inventory: Inventory) -> list[str]:
    """Return every problem of a scenario, as a person reads it."""
    try:
        overrides = read_override(inventory.override, max(1, len(inventory.logs)))
    except OverrideError as error:
        return [str(error)]
    found = list(_override_lossy_problems(inventory))
    for index, path in enumerate(inventory.logs):
        found += _file_problems(path, index, overrides.get(index), str(inventory.override))
    if not inventory.logs and not isinstance(overrides.get(0), Replacement):
        found.append(f"{inventory.override}: there is no session.jsonl beside it to be patched")
    return found


def _override_lossy_problems(inventory: Inventory) -> Iterator[str]:
    if inventory.override is not None:
        for row, column, what in lossy_parts(inventory.override.read_bytes()):
            yield f"{inventory.override}:{row}:{column}: {what}"


def _file_problems(
    path: Path, index: int, override: SessionOverride | None, where: str
) -> Iterator[str]:
    name = os.fspath(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        yield str(unreadable(name, error))
        return
    broken = list(_line_problems(data, name))
    yield from broken
    if not broken:
        yield from _lossy_problems(data, name)
        log = read_session_log(data, name=name)
        calls = derive_calls(log.events, seed_length=log.header.seed_length if index else 0)
        yield from _call_problems(log, calls, override)
        yield from _number_problems(log, calls)
        yield from _override_problems(calls, override, where, session=index)


def _line_problems(data: bytes, name: str) -> Iterator[str]:
    """Yield what keeps a log from being read; reading it would stop at the first."""
    started = False
    for number, line in enumerate(as_lines(data), 1):
        try:
            for _, record in numbered_objects([line], name, start=number):
                if started:
                    _check_packed(record, line, name, number)
                else:
                    started = True
                    read_header(record, line, name, number)
        except SessionLogError as error:
            started = True
            yield str(error)
    if not started:
        try:
            read_session_log(data, name=name)
        except SessionLogError as error:
            yield str(error)


def _check_packed(record: dict[str, object], line: bytes, name: str, number: int) -> None:
    kind = record.get("type")
    if isinstance(kind, str) and kind in PACKED:
        try:
            count_members(record)
        except MalformedRowError as error:
            raise malformed(record, error, line, name, number) from None


def _lossy_problems(data: bytes, name: str) -> Iterator[str]:
    for number, line in enumerate(as_lines(data), 1):
        for _, column, what in lossy_parts(line) if line.strip() else ():
            yield f"{name}:{number}:{column}: {what}"


def _call_problems(
    log: SessionLog, calls: Sequence[DerivedCall], override: SessionOverride | None
) -> Iterator[str]:
    """Yield the calls that can't be served as the log has them, unless the override has them."""
    if isinstance(override, Replacement):
        return
    patched = override.by_place.keys() if isinstance(override, Patches) else ()
    for place, call in enumerate(calls):
        if call.entry is None and not (call.announced and place in patched):
            yield str(call.error(_where(log, call.place)))
    if log.header.tokens:
        for place, what in lawless_rows(call for call in calls if call.call - 1 not in patched):
            yield str(lawless(_where(log, place), what))


def _number_problems(log: SessionLog, calls: Sequence[DerivedCall]) -> Iterator[str]:
    """Yield the announcements that count otherwise than the calls that are there."""
    for call in calls:
        if call.announced:
            data = log.events[call.place].get("data")
            told = data.get("call") if type(data) is dict else None
            if told != call.call:
                where, said = _where(log, call.place), shown(told)
                yield f"{where}: this llm/call says that it is call {said}; it is {call.call}"


def _override_problems(
    calls: Sequence[DerivedCall], override: SessionOverride | None, where: str, *, session: int
) -> Iterator[str]:
    if override is None:
        return
    try:
        apply_override(calls, override, where=where, session=session)
    except OverrideError as error:
        yield str(error)
    if repeats_log(override, calls):
        where = f"{where}: session {session}" if session else where
        yield f"{where}: it says only what the log derives to\n  hint: remove it"


def _where(log: SessionLog, place: int) -> str:
    return f"{log.name}:{log.lines[place]}"
