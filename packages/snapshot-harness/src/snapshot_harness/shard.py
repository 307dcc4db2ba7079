"""A suite cut into parts of about equal length, for machines that share one run. No I/O."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts; `number` counts from 1."""

    number: int
    count: int

    def of(self, scenarios: Sequence[T]) -> Sequence[T]:
        """Return every `count`-th scenario from the `number`-th on.

        Neighbours by name tend to be alike, and slow together: dealing them out as cards levels
        the parts without knowing how long each takes. All parts together are the whole.
        """
        return scenarios[self.number - 1 :: self.count]

    @property
    def has_guards(self) -> bool:
        """Whether this part looks after what only needs to be looked at once."""
        return self.number == 1

    def __str__(self) -> str:
        """Return it as the command line has it."""
        return f"{self.number}/{self.count}"


def read_shard(text: str) -> Shard:
    """Read `I/N`.

    Raises:
        argparse.ArgumentTypeError: It is something else, or there is no such part.
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text, re.ASCII)
    shard = Shard(int(match[1]), int(match[2])) if match else None
    if shard is None or not 1 <= shard.number <= shard.count:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no shard\n  hint: I/N with I from 1 to N, as 2/4 for the second of four"
        )
    return shard


def shard_option(text: str) -> str:
    """Check `I/N` and return it as text, which xdist hands on to its workers."""
    return str(read_shard(text))
