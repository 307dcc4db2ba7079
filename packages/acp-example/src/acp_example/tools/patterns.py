"""File name patterns: `*`, `?`, `[…]` within names, `**` across them, `{a,b}`. No I/O."""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from acp_example.exceptions import ToolError

_ALTERNATIVES: Final = 64
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that relative paths, with slashes, either match or not."""

    alternatives: tuple[tuple[str, ...], ...]

    def matches(self, path: str) -> bool:
        """Say whether the whole path matches."""
        parts = tuple(path.split("/"))
        return any(_matches(pattern, parts) for pattern in self.alternatives)


def compile_pattern(text: str) -> Pattern:
    """Read a pattern; one without a slash matches names at any depth.

    Raises:
        ToolError: VALIDATION_ERROR, if it leads upwards, is absolute or has too many braces.
    """
    expanded = _expand(text)
    for alternative in expanded:
        if alternative.startswith("/") or ".." in alternative.split("/"):
            raise ToolError(
                "VALIDATION_ERROR",
                f"the pattern {text!r} must stay below the directory; name that one as path",
            )
    return Pattern(tuple(_parts(alternative) for alternative in expanded))


def _expand(text: str) -> list[str]:
    """Return the alternatives that braces stand for."""
    done: list[str] = []
    pending = [text]
    while pending:
        if len(done) + len(pending) > _ALTERNATIVES:
            raise ToolError("VALIDATION_ERROR", f"the pattern {text!r} has too many alternatives")
        current = pending.pop(0)
        braces = _BRACES.search(current)
        if braces is None:
            done.append(current)
            continue
        start, end = braces.span()
        pending += [current[:start] + part + current[end:] for part in braces[1].split(",")]
    return done


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(part for part in text.split("/") if part not in {"", "."})
    return parts if "/" in text else ("**", *parts)


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Match part by part, keeping every place in the pattern that can be reached."""
    reached = _closed({0}, pattern)
    for name in path:
        following = set()
        for place in reached:
            if place == len(pattern):
                continue
            if pattern[place] == "**":
                following.add(place)
            elif _name_pattern(pattern[place]).match(name):
                following.add(place + 1)
        reached = _closed(following, pattern)
    return len(pattern) in reached


def _closed(places: set[int], pattern: Sequence[str]) -> set[int]:
    """Add what is reached without a name: `**` may stand for no directory at all."""
    pending = list(places)
    while pending:
        place = pending.pop()
        if place < len(pattern) and pattern[place] == "**" and place + 1 not in places:
            places.add(place + 1)
            pending.append(place + 1)
    return places


@cache
def _name_pattern(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))
