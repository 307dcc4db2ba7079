"""Session logs and their override to scripts: which call is answered how.

Reads the files that it is told, and nothing else.
"""

import gc
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from llm_replay.config import PathText, ReplayConfig, check_config
from llm_replay.derive import DerivedCall, ReplayEntry, derive_calls, derive_replay_script
from llm_replay.exceptions import OverrideError, Problem, ScriptError
from llm_replay.jsonl import SHORT, is_deep
from llm_replay.override import Replacement, SessionOverride, apply_override, parse_override
from llm_replay.packing import MalformedRowError
from llm_replay.session_log import (
    SessionHeader,
    lineage_key,
    open_log,
    read_header,
    read_session_log,
    sort_logs,
)
from llm_replay.tokens import check_tokens

__all__ = [
    "DerivedCall",
    "ReplayEntry",
    "SessionScript",
    "derive_calls",
    "derive_replay_script",
    "load_replay_script",
    "load_session_scripts",
    "read_calls",
    "read_override",
    "sort_logs",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionScript:
    """One session's calls in order.

    `index` is the place of its `file` among the files, the primary's being 0. `tokens` says
    that derived entries hold served tokens; entries whose places are in `overridden` are
    hand-written.
    """

    recorded_id: str
    created_at: int
    entries: list[ReplayEntry]
    primary: bool
    index: int = 0
    file: str = ""
    lineage: str | None = None
    tokens: bool = False
    overridden: frozenset[int] = frozenset()


def load_session_scripts(config: ReplayConfig) -> list[SessionScript]:
    """Return the scripts of all sessions in the order in which live sessions take them.

    The primary comes first; the others follow by lineage if all have one, else by the time
    they were created, and in the order of their files where that is equal.

    Raises:
        ConfigError: The configuration says something impossible.
        ReplayError: A file is missing, can't be read, or says something impossible.
    """
    config = check_config(config)
    files = [config.file, *config.child_files]
    overrides = read_override(config.override_file, len(files))
    with _no_collection():
        primary, *children = (
            _load(index, file, overrides.get(index), config.override_file)
            for index, file in enumerate(files)
        )
    if all(child.lineage is not None for child in children):
        children.sort(key=lambda child: lineage_key(child.lineage or ""))
    else:
        children.sort(key=lambda child: child.created_at)
    return [primary, *children]


def load_replay_script(config: ReplayConfig) -> list[ReplayEntry]:
    """Return the entries of the primary session alone.

    Raises:
        ConfigError: The configuration says something impossible.
        ReplayError: A file is missing, can't be read, or says something impossible.
    """
    config = check_config(config)
    override = read_override(config.override_file, None).get(0)
    return _load(0, config.file, override, config.override_file).entries


def read_calls(path: PathText, *, whole: bool = True) -> tuple[SessionHeader, list[DerivedCall]]:
    """Read the header and the calls of a log, keeping nothing else of it.

    A log is far larger than its chunks. `whole` takes an inherited prefix for the session's
    own, as the reference does with a primary.

    Raises:
        SessionLogError: A line is not what a log may contain.
        ScriptError: There is no such file, or it can't be read.
    """
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as lines, _no_collection():
            try:
                return _read_plainly(lines, name, whole=whole)
            except (orjson.JSONDecodeError, TypeError, MalformedRowError):
                lines.seek(0)
                return _read_carefully(lines, name, whole=whole)
    except OSError as error:
        raise unreadable(name, error) from None


def _read_plainly(
    lines: IO[bytes], name: str, *, whole: bool
) -> tuple[SessionHeader, list[DerivedCall]]:
    """Read a log in which nothing is out of the ordinary, without a loop of ours per line."""
    first = next(lines, b"")
    header = read_header(next(_records([first])), first, name, 1)
    return header, derive_calls(_records(lines), seed_length=0 if whole else header.seed_length)


def _records(lines: Iterable[bytes]) -> Iterator[Any]:
    """Yield what lines say, but for those that have to be read carefully."""
    loads = orjson.loads  # this loop is the speed of reading: keep it bare
    for line in lines:
        record = loads(line)
        if len(line) > SHORT and is_deep(line, record):
            raise TypeError
        yield record


def _read_carefully(
    lines: IO[bytes], name: str, *, whole: bool
) -> tuple[SessionHeader, list[DerivedCall]]:
    """Read a log with blank lines or lone surrogates, or say what is wrong with it, and where."""
    log = read_session_log(lines.read(), name=name)
    seed_length = 0 if whole else log.header.seed_length
    return log.header, derive_calls(log.events, seed_length=seed_length)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Put off garbage collection: JSON has no cycles, and looking for some takes a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load(
    index: int,
    file: PathText | None,
    override: SessionOverride | None,
    override_file: PathText | None,
) -> SessionScript:
    name = "" if file is None else os.fspath(file)
    if isinstance(override, Replacement):
        header = _header_if_there(name)
        return _script(index, name, header, override.entries, range(len(override.entries)))
    if not name:
        raise ScriptError(
            where="llm-replay",
            what="no session log is named",
            hint="set DSH_SNAPSHOT_FILE, or file in the configuration",
        )
    header, calls = read_calls(name, whole=index == 0)
    where = "" if override_file is None else os.fspath(override_file)
    entries = apply_override(calls, override, where=where, session=index)
    patched = override.by_place.keys() if override else ()
    _refuse_holes(name, calls, patched)
    if header.tokens:
        for place, what in lawless_rows(call for call in calls if call.call - 1 not in patched):
            raise lawless(_line_of(name, place), what)
    return _script(index, name, header, [entry or {} for entry in entries], patched)


def _script(
    index: int,
    name: str,
    header: SessionHeader | None,
    entries: list[ReplayEntry],
    overridden: Iterable[int],
) -> SessionScript:
    return SessionScript(
        recorded_id=header.id if header else "",
        created_at=header.created_at if header else 0,
        entries=entries,
        primary=index == 0,
        index=index,
        file=name,
        lineage=header.lineage if header else None,
        tokens=header.tokens if header else False,
        overridden=frozenset(overridden),
    )


def _header_if_there(name: str) -> SessionHeader | None:
    """Read the header of a log that need not exist, because its script is replaced."""
    if not name or not Path(name).exists():
        return None
    try:
        with Path(name).open("rb") as lines:
            return open_log(lines, name)[0]
    except OSError as error:
        raise unreadable(name, error) from None


def _refuse_holes(name: str, calls: Sequence[DerivedCall], patched: Collection[int]) -> None:
    """Refuse the first call that can't be derived.

    A patch fills a hole that an `llm/call` announced. Otherwise where a call begins and
    ends is a guess, and so is every later place.
    """
    for place, call in enumerate(calls):
        if call.entry is None and not (call.announced and place in patched):
            raise call.error(_line_of(name, call.place))


def lawless_rows(calls: Iterable[DerivedCall]) -> Iterator[tuple[int, str]]:
    """Yield what can't be in the model rows of a normalized log, with the place of its event."""
    for call in calls:
        for place, what in check_tokens(_rows_of(call)):
            if place < len(call.positions):
                yield call.positions[place], what
            else:
                yield call.place if call.summary is None else call.summary, what


def lawless(where: str, what: str) -> ScriptError:
    """Return the error of a model row that can't have come from normalizing."""
    return ScriptError(
        where=where,
        what=what,
        why="In a log with tokens: 1, every {{ of a model row begins a served token.",
        hint="write {{lit}} for two braces that the model said",
    )


def _rows_of(call: DerivedCall) -> list[Any]:
    """Return the chunks that are model rows: a failure derived from other events is none."""
    chunks = call.entry["chunks"] if call.entry else []
    return chunks if call.summary is not None else chunks[: len(call.positions)]


def _line_of(name: str, place: int) -> str:
    """Find the line that an event came from: reading keeps no numbers, errors can wait."""
    log = read_session_log(Path(name).read_bytes(), name=name)
    return f"{name}:{log.lines[place]}"


def unreadable(name: str, error: OSError) -> ScriptError:
    """Return the error of a log that the file system does not give."""
    if isinstance(error, FileNotFoundError):
        return ScriptError(where=name, what="there is no such file", hint="record the scenario")
    return ScriptError(where=name, what=f"this file can't be read: {error.strerror}")


def read_override(file: PathText | None, sessions: int | None) -> dict[int, SessionOverride]:
    """Read a sidecar, if one is named: what it says of each session.

    Raises:
        OverrideError: It can't be read, or says something impossible.
    """
    if file is None:
        return {}
    name = os.fspath(file)
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        problem = Problem("", f"this file can't be read: {error.strerror}")
        hint = "name a file that is there, or none"
        raise OverrideError(where=name, problems=[problem], hint=hint) from None
    return parse_override(data, where=name, sessions=sessions)
