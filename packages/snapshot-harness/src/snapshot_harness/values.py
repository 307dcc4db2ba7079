"""JSON by value, types strict: fingerprints, first differences, short pictures. No I/O."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any, Final

import orjson

from snapshot_harness.identities import without_numbers
from snapshot_harness.json_value import Json, after_word, before_word

ABSENT: Final = object()
"""What stands where there is nothing."""

_PLACEHOLDER = "{{fromRequest:"
_LIVE = re.compile(r"\{\{fromRequest:.*?\}\}+")
_WIDTH = 160
_LINE = 200
"""How many characters of a value, and of a line of a diff, are shown."""


def fingerprint(value: object) -> str:
    """Return a text that is equal for equal values only: `1`, `1.0` and `true` differ.

    The order of keys does not matter.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a lone surrogate, or an integer above 64 bits
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


def differences(
    expected: Json,
    actual: Json,
    path: str = "",
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each place where two values differ, the numbers of tokens aside."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            below = f"{path}.{key}" if path else key
            yield from differences(expected.get(key, ABSENT), actual.get(key, ABSENT), below)
    elif isinstance(expected, list) and isinstance(actual, list):
        for place in range(max(len(expected), len(actual))):
            left = expected[place] if place < len(expected) else ABSENT
            right = actual[place] if place < len(actual) else ABSENT
            yield from differences(left, right, f"{path}[{place}]")
    elif not _same_leaf(expected, actual):
        yield path, expected, actual


def shown(value: object, other: object = ABSENT) -> str:
    """Return a value on one short line, cut so that what differs from `other` is in sight."""
    if value is ABSENT:
        return "nothing"
    text = value if isinstance(value, str) else fingerprint(value)
    start = 0
    if len(text) > _WIDTH and other is not ABSENT:
        beside = other if isinstance(other, str) else fingerprint(other)
        start = before_word(text, max(0, first_difference(text, beside) - _WIDTH // 3))
    cut = text[start : after_word(text, start + _WIDTH)]
    picture = json.dumps(cut, ensure_ascii=False) if isinstance(value, str) else cut
    picture = picture.encode(errors="backslashreplace").decode()
    before = f"… {start} characters, then " if start else ""
    left = len(text) - start - len(cut)
    return before + picture + (f" … and {left} more characters" if left else "")


def in_sight(lines: Sequence[str]) -> list[str]:
    """Cut the lines of a diff, each so that what differs from its counterpart is in sight."""
    runs = [list(run) for _, run in groupby(lines, key=lambda line: line[:1])]
    cut = []
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        others = {"-": after, "+": before}.get(run[0][:1], [])
        pairs = zip_longest(run, others[: len(run)], fillvalue="")
        cut += [_line_in_sight(line, other) for line, other in pairs]
    return cut


def first_difference(left: str, right: str) -> int:
    """Return the index of the first character that differs, by halving."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _line_in_sight(line: str, other: str) -> str:
    sign, text = line[:1], line[1:]
    start = first_difference(text, other[1:]) - _LINE // 3 if other else 0
    start = before_word(text, max(0, min(start, len(text) - _LINE)))
    return f"{sign}{'… ' if start else ''}{text[start : after_word(text, start + _LINE)]}"


def _same_leaf(expected: object, actual: object) -> bool:
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, str) and isinstance(actual, str):
        left, right = without_numbers(expected), without_numbers(actual)
        return left == right or (_PLACEHOLDER in expected and _fits(expected, actual))
    return expected is actual or expected == actual


def _fits(expected: str, actual: str) -> bool:
    """Tell whether a text with placeholders may have become `actual`."""
    parts = [re.escape(part) for part in _LIVE.split(expected)]
    return re.fullmatch(".*?".join(parts), actual, re.DOTALL) is not None
