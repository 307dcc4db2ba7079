"""A session log: its text to a header and events, and back. No I/O."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

from llm_replay.exceptions import SessionLogError
from llm_replay.jsonl import as_lines, dump_line, numbered_objects
from llm_replay.packing import (
    PACKED,
    MalformedRowError,
    expand_row,
    pack_events,
    project_row,
)
from llm_replay.places import column_of
from llm_replay.values import shown

SessionEvent = dict[str, Any]
"""A decoded event: the JSON object, with `seq` and `time`."""

VERSIONS = (0, 1)
"""Header versions that we read: the reference's, and ours."""

_NAME = "session snapshot"
_LINEAGE = re.compile(r"[1-9]\d*(?:/[1-9]\d*(?:\.[1-9]\d*){2,3})*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """The first record of a log, lenient in all but its type, version and our own keys.

    `raw` is the JSON object itself. `tokens` says that the log is normalized.
    """

    id: str
    created_at: int
    cwd: str | None
    parent_session: str | None
    seed_length: int
    lineage: str | None
    version: int
    tokens: bool
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLog:
    """A whole log. `lines[i]` is the number of the line that `events[i]` came from."""

    header: SessionHeader
    events: list[SessionEvent]
    lines: list[int]
    name: str


def read_session_log(data: bytes | str, *, name: str = _NAME) -> SessionLog:
    """Read a persisted or projected log, in plain or packed rows.

    What a projected log leaves out is filled in: `seq` by counting, `time` with 0.

    Raises:
        SessionLogError: A line is not what a log may contain.
    """
    header, records = open_log(as_lines(data), name)
    events: list[SessionEvent] = []
    lines: list[int] = []
    for number, record in records:
        kind = record.get("type")
        if type(kind) is str and kind in PACKED:
            _fill_in(record, "seq0", "time0", len(events))
            try:
                members = expand_row(record)
            except MalformedRowError as error:
                line = next(islice(as_lines(data), number - 1, None))
                raise malformed(record, error, line, name, number) from None
            events += members
            lines += [number] * len(members)
        else:
            _fill_in(record, "seq", "time", len(events))
            events.append(record)
            lines.append(number)
    return SessionLog(header=header, events=events, lines=lines, name=name)


def parse_session_log(text: bytes | str) -> list[SessionEvent]:
    """Return the decoded events of a log.

    Raises:
        SessionLogError: A line is not what a log may contain.
    """
    return read_session_log(text).events


def parse_session_header(text: bytes | str) -> SessionHeader:
    """Read a log's first record, and nothing after it.

    Raises:
        SessionLogError: It is not a session header that we know.
    """
    return open_log(as_lines(text), _NAME)[0]


def open_log(
    lines: Iterable[bytes], name: str
) -> tuple[SessionHeader, Iterator[tuple[int, dict[str, Any]]]]:
    """Read the header; return it with the numbered records after it, not yet read."""
    numbered = enumerate(lines, 1)
    for number, line in numbered:
        for _, first in numbered_objects([line], name, start=number):
            rest = (line for _, line in numbered)
            records = numbered_objects(rest, name, start=number + 1)
            return read_header(first, line, name, number), records
    raise SessionLogError(
        name=name,
        line=1,
        column=1,
        what="this log is empty",
        why="Even a session without any event has a header.",
        hint="record the scenario, or write the header by hand",
    )


def read_header(raw: object, line: bytes, name: str, number: int) -> SessionHeader:
    """Read the first record of a log, which is what its `line` says.

    Raises:
        SessionLogError: It is not a session header that we know.
        TypeError: It is no object at all.
    """
    if type(raw) is not dict:
        raise TypeError
    for key, complaint in _header_complaints(raw):
        raise SessionLogError(
            name=name,
            line=number,
            column=column_of(line.decode(), [key]),
            what=complaint,
            why="The first record of a log is its header.",
            hint="name a session log here, written by a version that this one knows",
        )
    return SessionHeader(
        id=_text(raw, "id") or "",
        created_at=_number(raw, "createdAt"),
        cwd=_text(raw, "cwd"),
        parent_session=_text(raw, "parentSession"),
        seed_length=_number(raw, "seedLength"),
        lineage=_text(raw, "lineage"),
        version=raw.get("version", 0),
        tokens="tokens" in raw,
        raw=raw,
    )


def malformed(
    record: dict[str, Any], error: MalformedRowError, line: bytes, name: str, number: int
) -> SessionLogError:
    """Return the error of a packed row that is none, with its place."""
    return SessionLogError(
        name=name,
        line=number,
        column=column_of(line.decode(), error.path),
        what=f"a malformed {record['type']} row: {error}",
    )


def dump_session_log(
    header: dict[str, Any],
    events: Iterable[SessionEvent],
    *,
    layout: Literal["plain", "packed"],
    projected: bool,
) -> bytes:
    """Write a log, one compact record a line; `projected` leaves out `seq` and `time`."""
    rows = pack_events(events) if layout == "packed" else events
    body = map(project_row, rows) if projected else rows
    return b"".join(map(dump_line, chain([header], body)))


def lineage_key(lineage: str) -> tuple[tuple[int, ...], ...]:
    """Return what sorts lineages by their numbers, parents before children.

    Raises:
        ValueError: It is not a lineage.
    """
    if not _LINEAGE.fullmatch(lineage):
        raise ValueError(f"{lineage!r} is not a lineage such as '1' or '1/2.1.3'")
    return tuple(tuple(map(int, part.split("."))) for part in lineage.split("/"))


def sort_logs(headers: Iterable[SessionHeader]) -> list[int]:
    """Return the places of the headers in the order of their files.

    By lineage; those without one after them: no parent first, then by creation, then by id.
    """

    def key(numbered: tuple[int, SessionHeader]) -> tuple[object, ...]:
        header = numbered[1]
        if header.lineage is not None:
            return (0, lineage_key(header.lineage))
        return (1, header.parent_session is not None, header.created_at, header.id)

    return [place for place, _ in sorted(enumerate(headers), key=key)]


def _fill_in(record: dict[str, Any], seq_key: str, time_key: str, seq: int) -> None:
    """Give a projected record what it left out; what is there stays, even `null`."""
    record.setdefault(seq_key, seq)
    record.setdefault(time_key, 0)


def _header_complaints(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a header, each with its key."""
    kind, version, lineage = raw.get("type"), raw.get("version", 0), raw.get("lineage")
    if kind != "session":
        yield "type", f"the type of the header is {shown(kind)}, not 'session'"
    if type(version) not in (int, float) or version not in VERSIONS:
        yield "version", f"the header has version {shown(version)}; known are 0 and 1"
    if "tokens" in raw and (type(raw["tokens"]) is not int or raw["tokens"] != 1):
        yield "tokens", f"the header has tokens {shown(raw['tokens'])}; known is 1"
    if "lineage" in raw and not (type(lineage) is str and _LINEAGE.fullmatch(lineage)):
        yield (
            "lineage",
            f"the header has lineage {shown(lineage)}, which is not one such as '1' or '1/2.1.3'",
        )


def _text(raw: dict[str, Any], key: str) -> str | None:
    value = raw.get(key)
    return value if type(value) is str else None


def _number(raw: dict[str, Any], key: str) -> Any:  # noqa: ANN401  an integer unless the file says a fraction
    value = raw.get(key)
    return value if type(value) in (int, float) else 0
