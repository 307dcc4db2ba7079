"""Where something stands in the text of a JSON value. No I/O.

A reader has the value and no longer its place. When there is something to complain of, the text
is looked through once more; until then nothing is paid for.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

_BLANKS = re.compile(r"[ \t\r\n]*")
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_INTEGER = re.compile(r"-?[0-9]+(?![0-9.eE])")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_WHOLE = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object, by its key, or of an array, by its index; offsets into the text."""

    key: str | int
    start: int
    value: int


def column_of(text: str, path: Sequence[str | int]) -> int:
    """Return the column, from 1, in which the member at `path` begins: its key, where it has one.

    Where there is no such member, that of the innermost object or array that is there.
    """
    start = value = _skip(text, 0)
    for key in path:
        found = [member for member in members_at(text, value) if member.key == key]
        if not found:
            return value + 1
        start, value = found[-1].start, found[-1].value  # of equal keys the last one counts
    return start + 1


def deep_place(text: str, levels: int) -> tuple[int, int]:
    """Return row and column of the first bracket that nests deeper than `levels`."""
    marks = list(_MARKS.finditer(text))
    depths = accumulate(_STEPS.get(mark.group(), 0) for mark in marks)
    place = next(mark.start() for mark, depth in zip(marks, depths, strict=True) if depth > levels)
    return _row_and_column(text, place)


def lossy_places(text: str, fits: Callable[[str], bool]) -> list[tuple[int, int, str]]:
    """Say, with row and column, which keys stand twice and which integers do not fit."""
    found: list[tuple[int, str]] = []
    todo = [_skip(text, 0)]
    while todo:
        seen: set[str | int] = set()
        place = todo.pop()
        integer = _INTEGER.match(text, place)
        if integer and not fits(integer.group()):
            found.append((place, f"the integer {integer.group()[:24]} does not fit into 64 bits"))
        for member in members_at(text, place):
            if member.key in seen:
                found.append((member.start, f"the key {member.key!r} stands twice in one object"))
            seen.add(member.key)
            todo.append(member.value)
    return [(*_row_and_column(text, place), what) for place, what in sorted(found)]


def members_at(text: str, place: int) -> Iterator[Member]:
    """Yield the members of the value at `place`; what is no object and no array has none.

    The text must be valid.
    """
    keyed, index = text[place] == "{", 0
    if not keyed and text[place] != "[":
        return
    place = _skip(text, place + 1)
    while text[place] not in "]}":
        key, start = index, place
        if keyed:
            key, place = _WHOLE.raw_decode(text, place)
            place = _skip(text, _skip(text, place) + 1)
        yield Member(key, start, place)
        place = _skip(text, _WHOLE.raw_decode(text, place)[1])
        if text[place] == ",":
            place = _skip(text, place + 1)
        index += 1


def _row_and_column(text: str, place: int) -> tuple[int, int]:
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def _skip(text: str, place: int) -> int:
    """Return the place of what comes after the blanks at `place`."""
    found = _BLANKS.match(text, place)
    return found.end() if found else place
