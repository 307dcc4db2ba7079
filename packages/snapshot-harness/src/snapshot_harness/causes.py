"""Causes of a failure: what one is, folding those that say the same, telling them. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

MAX_CAUSES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One difference: where it is, what was expected, what came.

    `line` counts in the fixture's file. `folded` counts later differences that
    say the same. `records` are the whole records of both sides, cut to a line.
    """

    surface: Literal["log", "transcript"]
    file: str
    session: str | None
    turn: int | None
    step: int | None
    line: int | None
    path: str
    expected: str
    actual: str
    message: str
    folded: int = 0
    records: tuple[str, str] = ("", "")


def fold(causes: Sequence[Cause]) -> list[Cause]:
    """Fold a difference into an earlier one that says the same, and a run of lone records."""
    kept: list[Cause] = []
    seen: dict[object, int] = {}
    for cause in causes:
        key: object = (cause.expected, cause.actual)
        if cause.expected == "nothing" or cause.actual == "nothing":
            key = (cause.surface, cause.file, cause.turn, cause.step, cause.expected == "nothing")
        place = seen.get(key)
        if place is None and len(kept) >= MAX_CAUSES:
            place = len(kept) - 1
        if place is None:
            seen[key] = len(kept)
            kept.append(cause)
        else:
            kept[place] = replace(kept[place], folded=kept[place].folded + 1 + cause.folded)
    return kept


def render(causes: Sequence[Cause], *, directory: str = "", limit: int = 5) -> str:
    """Return the causes as text: the first `limit` of them, and how many more there are."""
    parts = [_text(cause, directory) for cause in causes[:limit]]
    left = sum(1 + cause.folded for cause in causes[limit:])
    if left > 0:
        parts.append(f"and {left} more {'difference' if left == 1 else 'differences'}")
    return "\n".join(parts)


def diff(causes: Sequence[Cause], *, limit: int = 6) -> str:
    """Return the records around the first `limit` causes, committed and actual, as a diff."""
    lines = []
    for cause in [cause for cause in causes if any(cause.records)][:limit]:
        lines.append(f"  @@ {_where(cause, '')}")
        lines += [
            f"  {sign} {text}" for sign, text in zip("-+", cause.records, strict=True) if text
        ]
    return "\n".join(lines)


def _where(cause: Cause, directory: str) -> str:
    where = f"{directory}/{cause.file}" if directory else cause.file
    return where if cause.line is None else f"{where}:{cause.line}"


def _text(cause: Cause, directory: str) -> str:
    place = [
        f"{word} {value}"
        for word, value in (
            ("session", cause.session),
            ("turn", cause.turn),
            ("step", cause.step),
        )
        if value is not None
    ]
    where = _where(cause, directory)
    lines = [f"{where}: {', '.join(place)}{': ' if place else ''}{cause.message}"]
    if cause.path:
        lines.append(f"  at:       {cause.path}")
    lines += [f"  expected: {cause.expected}", f"  actual:   {cause.actual}"]
    if cause.folded == 1:
        lines.append("  1 later difference follows from it or says the same")
    elif cause.folded:
        lines.append(f"  {cause.folded} later differences follow from it or say the same")
    return "\n".join(lines)
