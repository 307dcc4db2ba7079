"""What model calls cost, added up. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_FIELDS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Token counts; None is a count that nobody reported, which is not zero."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> "Totals":
        """Read the counts of one call."""
        return cls().plus(usage)

    def plus(self, usage: Mapping[str, Any]) -> "Totals":
        """Return these counts with one call's added; what it does not report stays."""
        added: dict[str, int] = {}
        for name, key in _FIELDS.items():
            count = usage.get(key)
            if isinstance(count, int):
                added[name] = (getattr(self, name) or 0) + count
        return replace(self, **added)

    @property
    def total(self) -> int:
        """All tokens read and written. Reasoning is part of the output already."""
        return sum(
            count or 0 for count in (self.input, self.output, self.cache_read, self.cache_write)
        )

    @property
    def known(self) -> bool:
        """Whether anything was reported at all."""
        return any(getattr(self, name) is not None for name in _FIELDS)
