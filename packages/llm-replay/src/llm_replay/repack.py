"""A log rewritten in canonical layout: the same records, each run of deltas one row."""

import os
import tempfile
from pathlib import Path
from typing import Literal

from llm_replay.exceptions import ScriptError
from llm_replay.jsonl import as_lines, lossy_parts, numbered_objects
from llm_replay.session_log import dump_session_log, read_session_log

_PLACE_KEYS = {"seq", "time", "seq0", "time0"}


def repacked(data: bytes, name: str, *, layout: Literal["plain", "packed"]) -> bytes:
    """Return a log in canonical layout, projected if it was.

    Raises:
        SessionLogError: It is no log.
        ScriptError: Rewriting would lose something.
    """
    log = read_session_log(data, name=name)
    for number, line in enumerate(as_lines(data), 1):
        for _, column, what in lossy_parts(line) if line.strip() else ():
            where = f"{name}:{number}:{column}"
            raise ScriptError(where=where, what=what, hint="repair the line by hand")
    projected = _is_projected(data, name)
    return dump_session_log(log.header.raw, log.events, layout=layout, projected=projected)


def replace_file(path: Path, data: bytes) -> None:
    """Put new content in the place of a file, all or nothing, its permissions kept.

    A symbolic link stays one: what is replaced is the file that it leads to.

    Raises:
        ScriptError: The file system doesn't let us.
    """
    try:
        _replace(path.resolve(), data)
    except OSError as error:
        what = f"this file can't be rewritten: {error.strerror}"
        raise ScriptError(
            where=os.fspath(path),
            what=what,
            why="It is as it was.",
            hint="see to the permissions or the disk, and pack it again",
        ) from None


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o7777)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _is_projected(data: bytes, name: str) -> bool:
    """Say whether a log has left out places and times, in all of its records."""
    records = [record for _, record in numbered_objects(as_lines(data), name)][1:]
    placed = [record.keys() & _PLACE_KEYS for record in records]
    if any(placed) and not all(len(keys) == len(_PLACE_KEYS) / 2 for keys in placed):
        raise ScriptError(
            where=name,
            what="some records have a seq and a time, and others have none",
            hint="remove the keys seq, time, seq0 and time0 from all of them",
        )
    return not any(placed)
