"""Builders for hand-written calls: what a model says, in one line each. No I/O."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, cast

from llm_replay.chunks import Chunk, FinishReason, TokenUsage
from llm_replay.derive import ReplayEntry
from llm_replay.values import copied


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A piece of an answer: its type, how it opens, its deltas, and how it ends.

    A block that isn't `ended` is cut off: no `block-end` follows its deltas.
    """

    kind: str
    deltas: tuple[dict[str, Any], ...]
    block: dict[str, Any]
    ended: bool

    def chunks(self, index: int) -> Iterator[dict[str, Any]]:
        """Yield the block's chunks at its place in the answer."""
        yield {"type": "block-start", "index": index, "blockType": self.kind}
        for delta in self.deltas:
            kind, *rest = delta.items()
            yield dict([kind, ("index", index), *rest])
        if self.ended:
            yield {"type": "block-end", "index": index, "block": self.block}


Step: TypeAlias = Block | ReplayEntry
"""One call of a script: an entry, or a block that is a whole answer by itself."""

After: TypeAlias = Block | Sequence[Block | Chunk]
"""What is served before a call fails or hangs."""


def say(text: str, *, split: int = 1, ended: bool = True) -> Block:
    """Say `text`, streamed in `split` deltas of about the same size (0: only the whole block)."""
    deltas = tuple({"type": "text-delta", "text": piece} for piece in _cut(text, split))
    return Block(kind="text", deltas=deltas, block={"type": "text", "text": text}, ended=ended)


def think(text: str, *, split: int = 1, ended: bool = True) -> Block:
    """Think `text` aloud, streamed in `split` deltas."""
    deltas = tuple({"type": "reasoning-delta", "text": piece} for piece in _cut(text, split))
    block = {"type": "reasoning", "text": text}
    return Block(kind="reasoning", deltas=deltas, block=block, ended=ended)


def call(
    call_id: str,
    name: str,
    arguments: dict[str, Any] | str | None = None,
    *,
    split: int = 1,
    ended: bool = True,
) -> Block:
    """Ask for the tool `name`; arguments that are a string are streamed as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    head = {"type": "tool-call-delta", "id": call_id, "name": name}
    deltas = tuple({**head, "argumentsDelta": piece} for piece in _cut(text, split))
    block = {"type": "tool-call", "id": call_id, "name": name, "arguments": text}
    return Block(kind="tool-call", deltas=deltas, block=block, ended=ended)


def round_(
    *blocks: Block,
    finish: FinishReason | str | None = "",
    usage: TokenUsage | None = None,
) -> ReplayEntry:
    """Answer with `blocks`, then finish.

    Without `finish` the reason is `tool-calls` if a tool is asked for, else `stop`; with `None`
    the stream ends without one, which no provider should do.
    """
    chunks = _prefix(blocks)
    if usage is not None:
        chunks.append({"type": "usage", "usage": usage})
    if finish is not None:
        called = any(block.kind == "tool-call" for block in blocks)
        kind = finish or ("tool-calls" if called else "stop")
        reason = {"kind": kind} if isinstance(kind, str) else kind
        chunks.append(cast("Chunk", {"type": "finish", "reason": reason}))
    return raw(chunks)


def error(code: str, message: str = "", **details: int | str) -> FinishReason:
    """Return a finish for `round_`: the provider fails with `code`.

    `details` are a failure's other fields: `status`, `providerRetryAfterMs`, `requestId`.
    """
    failure = {"message": message or f"scripted failure {code}", "code": code, **details}
    return cast("FinishReason", {"kind": "error", "failure": failure})


def fail(code: str, message: str = "", *, after: After = ()) -> ReplayEntry:
    """Raise the provider's failure `code`, once what comes `after` is served."""
    message = message or f"scripted failure {code}"
    return {"kind": "throw", "chunks": _prefix(after), "message": message, "code": code}


def hang(*, after: After = ()) -> ReplayEntry:
    """Serve what comes `after`, then wait until the consumer is cancelled."""
    return {"kind": "hang", "chunks": _prefix(after)}


def raw(chunks: Sequence[Chunk]) -> ReplayEntry:
    """Serve `chunks` as they are, however malformed a stream they make."""
    return {"kind": "chunks", "chunks": list(chunks)}


def as_entry(step: Step) -> ReplayEntry:
    """Return the entry that a step stands for, its own copy: steps are used again."""
    entry: ReplayEntry = copied(round_(step) if isinstance(step, Block) else step)
    return entry


def _prefix(after: After) -> list[Chunk]:
    chunks: list[Any] = []
    for index, item in enumerate([after] if isinstance(after, Block) else after):
        chunks.extend(item.chunks(index) if isinstance(item, Block) else [item])
    return chunks


def _cut(text: str, pieces: int) -> list[str]:
    """Cut `text` into `pieces`, the longer ones first; none is empty unless there must be."""
    size, longer = divmod(len(text), pieces) if pieces else (0, 0)
    starts = [place * size + min(place, longer) for place in range(pieces + 1)]
    return [text[start:end] for start, end in pairwise(starts)]
