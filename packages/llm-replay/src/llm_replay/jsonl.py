"""Lines of JSON: bytes to objects and back, exactly or not at all. No I/O.

orjson reads and writes everything it can. It refuses lone surrogates, which a
stream cut in the middle of an emoji does contain; such a line, and no other,
goes through the standard library. What is nested more deeply than a log ever
is gets refused here, so that nobody after us has to follow it.
"""

import io
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import orjson

from llm_replay.exceptions import SessionLogError
from llm_replay.places import deep_place, lossy_places
from llm_replay.values import nests_deeper

DEPTH = 200
"""How deeply a value may be nested: every reader, and every writer, goes that far."""

SHORT = 2 * DEPTH
"""How many bytes a line may have that can't be nested too deeply, whatever is in it."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_CONFLICT_MARKS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
_BOM = b"\xef\xbb\xbf"
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_LONGEST = len(str(_INT_MAX))


def as_lines(data: bytes | str) -> Iterable[bytes]:
    """Return the lines of a text; only LF ends one."""
    return io.BytesIO(data.encode(errors="surrogatepass") if isinstance(data, str) else data)


def numbered_objects(
    lines: Iterable[bytes], name: str, *, start: int = 1
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each JSON object with the number of its line; blank lines are counted and skipped.

    Raises:
        SessionLogError: A line is not one JSON object.
    """
    loads = orjson.loads  # this loop is the speed of reading: keep it bare
    for number, line in enumerate(lines, start):
        try:
            value = loads(line)
        except orjson.JSONDecodeError:
            if not line.strip():
                continue
            value = _loads_surrogates(line, name, number)
        if type(value) is not dict:
            raise SessionLogError(
                name=name, line=number, column=1, what="this line is not a JSON object"
            )
        if len(line) > SHORT and is_deep(line, value):
            raise _too_deep(line, name, number)
        yield number, value


def loads(line: bytes, *, name: str, number: int | None = None) -> Any:  # noqa: ANN401  JSON
    """Read one JSON text, lone surrogates included.

    Raises:
        SessionLogError: It is not JSON; the text says what it looks like instead.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = _loads_surrogates(line, name, number)
    if is_deep(line, value):
        raise _too_deep(line, name, number)
    return value


def is_deep(line: bytes, value: object) -> bool:
    """Say whether a value that was read from a line is nested too deeply; quick if it is not."""
    return line.count(b"[") + line.count(b"{") > DEPTH and nests_deeper(value, DEPTH)


def dump_line(value: object) -> bytes:
    """Write one value as compact JSON and a line feed.

    Raises:
        SessionLogError: It is nested more deeply than JSON is written.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        pass
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        what = "this value is nested too deeply to be written"
        raise SessionLogError(name="session snapshot", what=what) from None
    # Only lone surrogates can't be encoded, and this writes them as their JSON escape.
    return text.encode(errors="backslashreplace") + b"\n"


def find_lossy(line: bytes) -> list[str]:
    """Say what of a readable line different readers take differently.

    Duplicate keys, and integers outside the 64 bits that a reader may keep.
    """
    return [what for _, _, what in lossy_parts(line)]


def lossy_parts(text: bytes) -> list[tuple[int, int, str]]:
    """Say what of a readable text different readers take differently, each with row and column."""
    found: list[bool] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        if len(items) != len(dict(items)):
            found.append(True)

    def integer(text: str) -> None:
        if not _fits(text):
            found.append(True)

    decoded = text.decode()
    json.loads(decoded, object_pairs_hook=pairs, parse_int=integer)
    return lossy_places(decoded, _fits) if found else []


def _loads_surrogates(line: bytes, name: str, number: int | None) -> Any:  # noqa: ANN401  JSON
    """Read what orjson refused, if lone surrogates are the only reason."""
    if not _SURROGATE_ESCAPE.search(line):
        _refuse(line, name, number)
    try:
        return json.loads(
            line.decode(),
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_int_as_orjson,
        )
    except (ValueError, RecursionError):
        _refuse(line, name, number)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _fits(integer: str) -> bool:
    """Say whether an integer fits into the 64 bits of any reader, with or without a sign."""
    return len(integer) <= _LONGEST and _INT_MIN <= int(integer) <= _INT_MAX


def _int_as_orjson(text: str) -> int | float:
    return int(text) if _fits(text) else _finite(text)


def _too_deep(line: bytes, name: str, number: int | None) -> SessionLogError:
    row, column = deep_place(line.decode(), DEPTH)
    return SessionLogError(
        name=name,
        line=number or row,
        column=column,
        what=f"this is nested more than {DEPTH} levels deep",
        hint="keep what is nested so deeply as a string of JSON",
    )


def _refuse(line: bytes, name: str, number: int | None) -> NoReturn:
    """Raise the error that says most about a text that is not JSON."""
    row, column, what, hint = _complaint(line)
    raise SessionLogError(
        name=name,
        line=number or row,
        column=column,
        what=what,
        why="" if line.endswith(b"\n") else "The file ends in this line; it may have been cut off.",
        hint=hint,
    )


def _complaint(line: bytes) -> tuple[int, int, str, str]:
    """Return row, column, what and hint for a text that is not JSON."""
    line = line.rstrip(b"\r\n")  # or what is missing at the end would be missing in line 2
    if line.startswith(_BOM):
        return 1, 1, "a byte-order mark", "save the file as UTF-8 without one"
    if line.startswith(_CONFLICT_MARKS):
        return 1, 1, "a merge-conflict marker", "resolve the conflict, or refresh the scenario"
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        before = line[: error.start].decode().rpartition("\n")[2]
        row = line.count(b"\n", 0, error.start) + 1
        return row, len(before) + 1, "these bytes are not UTF-8", "record the scenario again"
    found = _json_error(line, text)
    return found.lineno, found.colno, f"this is not JSON: {found.msg}", ""


def _json_error(line: bytes, text: str) -> json.JSONDecodeError:
    """Return what is wrong with a text, lone surrogates apart."""
    try:
        orjson.loads(_SURROGATE_ESCAPE.sub(rb"\\u00", line))  # as long: columns stay
    except json.JSONDecodeError as error:
        return error
    return json.JSONDecodeError("nested too deeply", text, 0)
