"""Any JSON value: its type, and how a message shows it. No I/O."""

import json
import re
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What JSON can say; callers look before they use it."""


_LONGEST = 256
"""A word longer than that is cut all the same."""

_IN_WORD = re.compile(r"[\w\\.+/=~-]")
_WORD = re.compile(rf"[\w\\.+/=~-]{{0,{_LONGEST}}}")
_WORD_BEFORE = re.compile(r"[\w\\.+/=~-]*\Z")


def as_text(value: Json, limit: int = 2000) -> str:
    """Return a value as JSON on one line; what is beyond `limit` is cut."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else f"{text[: after_word(text, limit)]}…"


def before_word(text: str, place: int) -> int:
    """Return `place`, or where the word begins that it stands in.

    Texts are cut between words, lest what is shown holds a part of a credential: one that is
    whole is recognized and cut out.
    """
    return place - _length(_WORD_BEFORE, text[max(0, place - _LONGEST) : place + 1][::-1])


def after_word(text: str, place: int) -> int:
    """Return `place`, or where the word ends that it stands in."""
    return place + _length(_WORD_AFTER, text[max(0, place - 1) : place + _LONGEST])
