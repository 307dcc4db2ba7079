"""A suite's own rules of normalization: a JSON path or a pattern, and its token. No I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapshot_harness.json_value import Json

Identity: TypeAlias = Literal["numbered", "merged"]

TOKEN = re.compile(r"\{\{[A-Za-z][\w-]*(?::[^{}]*)?\}\}")
"""Anything that is already a token."""

_PART = r"(?:\*\*|\*|[^.\[\]*]+)"
_PATH = re.compile(rf"(?!\$\Z)(?:\$\.)?{_PART}(?:\.{_PART}|\[(?:\d+|\*)\])*")
_PATH_PART = re.compile(r"\*\*|\*|\d+|[^.\[\]*]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: what stands at `path`, or what `pattern` matches, becomes `token`."""

    token: str
    path: str | None = None
    pattern: str | None = None

    def in_text(self, text: str, *, keep: Sequence[tuple[int, int]] = ()) -> str:
        """Return `text` with each match, or its group 1, as the token.

        A token that is there already, or what stands at a span of `keep`, is
        replaced as a whole or not at all.
        """
        return text if self.pattern is None else self._once(self.pattern, text, keep)

    def _once(self, pattern: str, text: str, keep: Sequence[tuple[int, int]]) -> str:
        taken = [*keep, *(match.span() for match in TOKEN.finditer(text))]
        pieces: list[str] = []
        position = 0
        for match in re.finditer(pattern, text):
            group = 1 if match.re.groups else 0
            start, end = match.span(group)
            whole = all(start <= a and b <= end for a, b in taken if a < end and start < b)
            if start < position or start == end or not whole:
                continue
            pieces += [text[position:start], self.token]
            position = end
        return "".join([*pieces, text[position:]])

    def in_value(self, value: Json) -> Json:
        """Return a record with the value at `path` replaced."""
        if self.path is None:
            return value
        return _replace(value, _PATH_PART.findall(self.path.removeprefix("$")), self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a suite normalizes, beyond what every suite does."""

    identity: Identity = "numbered"
    rules: tuple[Rule, ...] = ()
    coalesce_chunks: bool = False


def is_path(text: str) -> bool:
    """Tell whether a text is a path that a rule can follow."""
    return _PATH.fullmatch(text) is not None


def _replace(value: Json, parts: list[str], token: str) -> Json:
    if not parts:
        return token
    part, rest = parts[0], parts[1:]
    if part == "**":
        value = _replace(value, rest, token)
        return _map_children(value, lambda child: _replace(child, parts, token))
    if isinstance(value, dict) and (part == "*" or part in value):
        keys = set(value) if part == "*" else {part}
        return {k: _replace(v, rest, token) if k in keys else v for k, v in value.items()}
    if isinstance(value, list) and (part == "*" or part.isdigit()):
        places = set(range(len(value))) if part == "*" else {int(part)}
        return [_replace(v, rest, token) if k in places else v for k, v in enumerate(value)]
    return value


def _map_children(value: Json, change: Json) -> Json:
    if isinstance(value, dict):
        return {key: change(child) for key, child in value.items()}
    if isinstance(value, list):
        return [change(child) for child in value]
    return value
