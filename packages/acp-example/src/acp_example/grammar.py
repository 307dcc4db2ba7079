"""What a well-formed model stream looks like, with one code per way to break it. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_example.assembly import Assembler, Block
from acp_example.exceptions import ModelError

_DELTAS = {"text-delta": "text", "reasoning-delta": "reasoning", "tool-call-delta": "tool-call"}

# A stream that was cut off, refused or failed may leave its blocks open.
_COMPLETE = frozenset({"max-tokens", "refusal", "error", "aborted"})


class StreamGrammarError(ModelError):
    """The model's stream broke the protocol; nothing of it may be used."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code=code, message=message)


class StreamReader:
    """Reads one model stream strictly: checks each chunk, and assembles what it accepts."""

    def __init__(self) -> None:
        self.assembler = Assembler()
        self._empty = True

    def read(self, chunk: Mapping[str, Any]) -> None:
        """Take in the next chunk.

        Raises:
            StreamGrammarError: The chunk may not stand here.
        """
        self._empty = False
        try:
            self._check(chunk)
            self.assembler.push(chunk)
        except (KeyError, TypeError, AttributeError) as error:
            raise StreamGrammarError(
                "STREAM_MALFORMED_CHUNK", f"a {chunk.get('type')!r} chunk lacks a part: {error}"
            ) from None

    def _check(self, chunk: Mapping[str, Any]) -> None:
        kind = chunk.get("type")
        if self.assembler.finished:
            raise StreamGrammarError(
                "STREAM_CHUNK_AFTER_FINISH", f"a {kind!r} chunk came after the finish"
            )
        match kind:
            case "block-start":
                self._check_start(chunk)
            case "text-delta" | "reasoning-delta" | "tool-call-delta":
                self._check_delta(str(kind), chunk)
            case "block-end":
                self._check_end(chunk)
            case "usage":
                self._check_usage()
            case "finish":
                self._check_finish(chunk)
            case _:
                raise StreamGrammarError("STREAM_UNKNOWN_CHUNK", f"no chunk has the type {kind!r}")

    def close(self) -> None:
        """Say that the stream has ended.

        Raises:
            StreamGrammarError: It ended too early.
        """
        if self._empty:
            raise StreamGrammarError("STREAM_EMPTY", "the model's stream had no chunk at all")
        if not self.assembler.finished:
            raise StreamGrammarError(
                "STREAM_NO_FINISH", "the model's stream ended without a finish"
            )

    def _check_start(self, chunk: Mapping[str, Any]) -> None:
        if self.assembler.block(chunk["index"]) is not None:
            raise StreamGrammarError(
                "STREAM_DUPLICATE_START", f"block {chunk['index']} was started twice"
            )

    def _check_delta(self, kind: str, chunk: Mapping[str, Any]) -> None:
        block = self.assembler.block(chunk["index"])
        if block is None:
            return
        if block.final is not None:
            raise StreamGrammarError(
                "STREAM_DELTA_AFTER_END", f"a {kind!r} chunk came for block {block.index}, closed"
            )
        if block.kind != _DELTAS[kind]:
            raise StreamGrammarError(
                "STREAM_WRONG_BLOCK_TYPE",
                f"a {kind!r} chunk came for block {block.index}, which is {block.kind!r}",
            )

    def _check_end(self, chunk: Mapping[str, Any]) -> None:
        index, content = chunk["index"], chunk["block"]
        block = self.assembler.block(index)
        if block is None:
            raise StreamGrammarError(
                "STREAM_END_WITHOUT_START", f"block {index} ended and was never started"
            )
        if block.final is not None:
            raise StreamGrammarError("STREAM_DUPLICATE_END", f"block {index} ended twice")
        if block.kind != content["type"]:
            raise StreamGrammarError(
                "STREAM_WRONG_BLOCK_TYPE",
                f"block {index} started as {block.kind!r} and ended as {content['type']!r}",
            )
        _check_content(block, content)

    def _check_usage(self) -> None:
        if self.assembler.usage is not None:
            raise StreamGrammarError("STREAM_SECOND_USAGE", "usage was reported twice")

    def _check_finish(self, chunk: Mapping[str, Any]) -> None:
        kind = chunk["reason"]["kind"]
        if kind in _COMPLETE:
            return
        if self.assembler.open_blocks:
            raise _uncommitted(self.assembler.open_blocks[0])
        check_calls([block for block in self.assembler.blocks() if block["type"] == "tool-call"])


def check_calls(calls: Sequence[Mapping[str, Any]]) -> None:
    """Check that the tool calls of one answer can be told apart.

    Raises:
        StreamGrammarError: A call has no id or no name, or two have the same id.
    """
    seen: set[str] = set()
    for call in calls:
        if not call["id"]:
            raise StreamGrammarError(
                "STREAM_CALL_WITHOUT_ID", f"a call of {call['name']!r} has no id"
            )
        if not call["name"]:
            raise StreamGrammarError(
                "STREAM_CALL_WITHOUT_NAME", f"the call {call['id']!r} names no tool"
            )
        if call["id"] in seen:
            raise StreamGrammarError(
                "STREAM_DUPLICATE_CALL_ID", f"two calls of one step have the id {call['id']!r}"
            )
        seen.add(call["id"])


def _check_content(block: Block, content: Mapping[str, Any]) -> None:
    field = "arguments" if block.kind == "tool-call" else "text"
    if block.pieces and block.streamed != content.get(field):
        raise StreamGrammarError(
            "STREAM_MISMATCH",
            f"the deltas of block {block.index} don't join to the {field} it ended with",
        )


def _uncommitted(block: Block) -> StreamGrammarError:
    if block.kind == "tool-call":
        return StreamGrammarError(
            "STREAM_UNCOMMITTED_CALL",
            f"the finish came while tool call block {block.index} was still open",
        )
    return StreamGrammarError(
        "STREAM_UNCOMMITTED_TEXT",
        f"the finish came while {block.kind} block {block.index} was still open",
    )
