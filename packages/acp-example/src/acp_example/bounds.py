"""Cutting text down to what a model should read. No I/O."""

from dataclasses import dataclass
from typing import Final

OUTPUT_BYTES: Final = 10_240
OUTPUT_LINES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much of a text a model reads: bytes of UTF-8, and lines."""

    size: int = OUTPUT_BYTES
    lines: int = OUTPUT_LINES

    def admits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        return _size(text) <= self.size and len(_lines(text)) <= self.lines


def cut_middle(text: str, marker: str, limit: Limit) -> str:
    """Return the start and the end of a text around one marker, all of it within the limit.

    The end is kept because commands say there what went wrong. No character is cut in two.
    """
    room = max(0, limit.size - _size(marker) - 2)
    lines = max(0, limit.lines - 1)
    head = cut_end(text, Limit(size=room - room // 2, lines=lines - lines // 2))
    tail = _cut_start(text[len(head) :], Limit(size=room // 2, lines=lines // 2))
    gap = "" if head.endswith("\n") or not head else "\n"
    return f"{head}{gap}{marker}\n{tail}"


def cut_end(text: str, limit: Limit) -> str:
    """Return the start of a text: as many whole characters and lines as the limit admits."""
    kept = "".join(_lines(text)[: limit.lines])
    return kept.encode("utf-8", "replace")[: limit.size].decode("utf-8", "ignore")


def _cut_start(text: str, limit: Limit) -> str:
    lines = _lines(text)
    kept = "".join(lines[max(0, len(lines) - limit.lines) :])
    data = kept.encode("utf-8", "replace")
    return data[max(0, len(data) - limit.size) :].decode("utf-8", "ignore")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _lines(text: str) -> list[str]:
    """Split after each LF, and nowhere else: `str.splitlines` knows a dozen further ends."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])
