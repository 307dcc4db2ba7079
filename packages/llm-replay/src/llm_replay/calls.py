"""One model call as it was found in a log, or the hole that it left. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from llm_replay.exceptions import ScriptError, UnfinishedCallError
from llm_replay.packing import row_chunks

ReplayEntry = dict[str, Any]
"""One call as replay serves it: the JSON object, its kind `chunks`, `throw` or `hang`."""

Purpose = Literal["turn", "compaction"]


@dataclass(frozen=True, kw_only=True)
class DerivedCall:
    """A call of a log, in its place.

    `place` is the index of the event it begins with, `positions` are those of its
    `assistant/chunk` events, `summary` is that of the `compaction/summary` it was derived
    from. `announced`: the log has its `llm/call`. For a hole, `problem` says why it is one.
    `parts` are its chunks; those of a packed row are still in that row, which stands in a
    tuple with how many of them are cut off.
    """

    call: int
    turn: Any
    step: Any
    purpose: Purpose
    kind: Literal["chunks", "hang"] = "chunks"
    parts: list[Any] = field(default_factory=list, repr=False)
    place: int
    positions: Sequence[int] = ()
    summary: int | None = None
    announced: bool = False
    problem: str | None = None
    unfinished: bool = False

    @cached_property
    def entry(self) -> ReplayEntry | None:
        """What replay serves for the call; `None` for a hole. Packed rows are expanded here."""
        if self.problem is not None:
            return None
        chunks = self.parts
        if tuple in set(map(type, chunks)):
            chunks = list(chain.from_iterable(map(_expanded, chunks)))
        return {"kind": self.kind, "chunks": chunks}

    def error(self, where: str) -> ScriptError:
        """Return what to raise for a hole."""
        if not self.unfinished:
            return ScriptError(
                where=where,
                what=self.problem or "",
                hint="repair this record, or record the scenario again",
            )
        if self.announced:
            hint = (
                "add replay.override.json with a patch for this call: "
                f'{{"patches": [{{"at": {self.call - 1}, "entry": {{"kind": "throw", …}}}}]}}'
            )
        else:
            hint = 'add replay.override.json: a list of all entries, this one "throw" or "hang"'
        return UnfinishedCallError(
            where=where, turn=self.turn, step=self.step, why=self.problem or "", hint=hint
        )


def _expanded(part: dict[str, Any] | tuple[dict[str, Any], int]) -> list[dict[str, Any]]:
    return row_chunks(part[0])[part[1] :] if isinstance(part, tuple) else [part]
