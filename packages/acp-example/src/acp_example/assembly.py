"""Putting the chunks of one model call together. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_DELTAS = {"text-delta": "text", "reasoning-delta": "reasoning", "tool-call-delta": "tool-call"}


@dataclass(slots=True)
class Block:
    """One block of an answer while it is streamed. A `final` block is complete."""

    kind: str
    index: int
    pieces: list[str] = field(default_factory=list)
    call_id: str = ""
    name: str = ""
    final: Mapping[str, Any] | None = None

    @property
    def streamed(self) -> str:
        """The text that its deltas carried."""
        return "".join(self.pieces)

    def assemble(self) -> Mapping[str, Any]:
        """Return the content block as far as it is known.

        Raises:
            ValueError: It is open, and of a kind that no delta can carry.
        """
        if self.final is not None:
            return self.final
        if self.kind in ("text", "reasoning"):
            return {"type": self.kind, "text": self.streamed}
        if self.kind == "tool-call":
            return {
                "type": "tool-call",
                "id": self.call_id or f"call-{self.index}",
                "name": self.name,
                "arguments": self.streamed,
            }
        raise ValueError(f"an open block of type {self.kind!r} can't be assembled")


class Assembler:
    """Collects chunks and says what they make; blocks stand in order of first sight."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}
        self._finish: Mapping[str, Any] | None = None
        self.usage: Mapping[str, Any] | None = None

    def push(self, chunk: Mapping[str, Any]) -> None:
        """Take in the next chunk.

        Raises:
            ValueError: Its type is none of the seven.
        """
        match chunk["type"]:
            case "block-start":
                self._open(chunk["index"], chunk["blockType"])
            case "text-delta" | "reasoning-delta" | "tool-call-delta" as kind:
                self._delta(kind, chunk)
            case "block-end":
                block = self._open(chunk["index"], chunk["block"]["type"])
                if block.final is None:
                    block.final = chunk["block"]
            case "usage":
                self.usage = chunk["usage"]
            case "finish":
                self._finish = chunk
            case other:
                raise ValueError(f"no chunk has the type {other!r}")

    def block(self, index: int) -> Block | None:
        """Return the block at an index, if a chunk has named it."""
        return self._blocks.get(index)

    @property
    def open_blocks(self) -> list[Block]:
        """The blocks that were begun and not completed."""
        return [block for block in self._blocks.values() if block.final is None]

    @property
    def finished(self) -> bool:
        """Whether a finish was seen."""
        return self._finish is not None

    @property
    def finish(self) -> Mapping[str, Any]:
        """Why the call ended; `stop` where nothing said so."""
        return self._finish["reason"] if self._finish else {"kind": "stop"}

    def blocks(self) -> list[Mapping[str, Any]]:
        """Return the content of the answer. One that was cut off has no tool calls."""
        blocks = [block.assemble() for block in self._blocks.values()]
        return [block for block, kept in zip(blocks, self._kept(blocks), strict=True) if kept]

    def interrupted_blocks(self) -> list[Mapping[str, Any]]:
        """Return what is worth keeping of an answer that was cancelled."""
        kept = [block for block in self._blocks.values() if block.kind in ("text", "reasoning")]
        contents = [block.assemble() for block in kept]
        return [content for content in contents if content["text"].strip()]

    def replay_state(self) -> Mapping[str, Any] | None:
        """Return the provider's own state, its block entries matched to `blocks()`."""
        state = self._finish.get("replayState") if self._finish else None
        if state is None or "blocks" not in state:
            return state
        blocks = [block.assemble() for block in self._blocks.values()]
        entries: Sequence[Any] = state["blocks"]
        if len(entries) != len(blocks):
            return None
        kept = [entry for entry, keep in zip(entries, self._kept(blocks), strict=True) if keep]
        return {**state, "blocks": kept}

    def _kept(self, blocks: Sequence[Mapping[str, Any]]) -> list[bool]:
        cut = self.finish["kind"] == "max-tokens"
        return [not (cut and block["type"] == "tool-call") for block in blocks]

    def _open(self, index: int, kind: str) -> Block:
        return self._blocks.setdefault(index, Block(kind, index))

    def _delta(self, kind: str, chunk: Mapping[str, Any]) -> None:
        block = self._open(chunk["index"], _DELTAS[kind])
        if block.final is not None:
            return
        if kind != "tool-call-delta":
            block.pieces.append(chunk["text"])
            return
        block.call_id = chunk["id"] or block.call_id
        block.name = chunk.get("name") or block.name
        block.pieces.append(chunk["argumentsDelta"])
