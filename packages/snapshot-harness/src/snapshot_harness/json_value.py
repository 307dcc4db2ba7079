"""Any JSON value: its type, and how a message shows it. No I/O."""

import json
import math
import re
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What JSON can say; callers look before they use it."""

_LONGEST = 256
"""A word longer than that is cut all the same."""

_WORD = re.compile(r"[\w\\.+/=~-]*")


def as_text(value: Json, limit: int = 2000) -> str:
    """Return a value as JSON on one line; what is beyond `limit` is cut."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else f"{text[: after_word(text, limit)]}…"


def finite(text: str) -> float:
    """Return a number as JSON spells it.

    Raises:
        ValueError: It is too large to be one: it would be read as an infinity, which JSON lacks.
    """
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text} is too large for anybody who reads it")
    return number


def before_word(text: str, place: int) -> int:
    """Return `place`, or where the word begins that would be cut in two there.

    Texts are cut between words, lest what is shown holds a part of a credential: one that is
    whole is recognized and cut out.
    """
    return place - _rest_of_word(text[max(0, place - _LONGEST) : place + 1][::-1])


def after_word(text: str, place: int) -> int:
    """Return `place`, which is not 0, or where the word ends that would be cut in two there."""
    return place + _rest_of_word(text[place - 1 : place + _LONGEST])


def _rest_of_word(text: str) -> int:
    """Return how many characters of the word that begins `text` follow its first."""
    match = _WORD.match(text)
    rest = match.end() - 1 if match else 0
    return rest if 0 < rest < _LONGEST else 0
