"""One model call while it streams. No I/O."""

from collections.abc import Mapping
from typing import Any, Final

from acp_example import updates
from acp_example.grammar import StreamReader
from acp_example.recorder import Recorder

_SHOWN: Final = {"text": "agent_message_chunk", "reasoning": "agent_thought_chunk"}


class Attempt:
    """Takes in one stream's chunks: each is logged as it came, checked, and shown.

    White space at the start of an answer waits for the first visible character: a blank answer
    is a failure that may be retried, which it could not be once the client had seen it.
    """

    def __init__(self, recorder: Recorder, *, turn: int, step: int) -> None:
        self._recorder = recorder
        self._turn = turn
        self._step = step
        self._held: dict[str, str] = {}
        self._visible: set[str] = set()
        self.reader = StreamReader()
        self.seqs: list[int] = []
        self.shown = False
        """Whether the client saw anything of this attempt."""

    def chunk(self, chunk: Mapping[str, Any]) -> None:
        """Take in the next chunk.

        Raises:
            StreamGrammarError: It may not stand here. It is in the log nevertheless.
        """
        data = {"turn": self._turn, "step": self._step, "chunk": chunk}
        self.seqs.append(self._recorder.record("assistant/chunk", data))
        whole = self._is_whole(chunk)
        self.reader.read(chunk)
        match chunk["type"]:
            case "text-delta":
                self._show("text", chunk["text"])
            case "reasoning-delta":
                self._show("reasoning", chunk["text"])
            case "block-end" if whole:
                self._show(chunk["block"]["type"], chunk["block"]["text"])

    def _is_whole(self, chunk: Mapping[str, Any]) -> bool:
        """Say whether a block comes in one piece, without deltas before it."""
        if chunk.get("type") != "block-end":
            return False
        block = self.reader.assembler.block(chunk["index"])
        return block is not None and block.kind in _SHOWN and not block.pieces

    def _show(self, kind: str, text: str) -> None:
        text = self._held.pop(kind, "") + text
        if kind not in self._visible and not text.strip():
            self._held[kind] = text
            return
        self._visible.add(kind)
        if text and self._recorder.tell(updates.text_chunk(_SHOWN[kind], text)):
            self.shown = True


class QuietAttempt(Attempt):
    """A model call whose chunks are neither logged nor shown: a summary."""

    def chunk(self, chunk: Mapping[str, Any]) -> None:
        """Take in the next chunk.

        Raises:
            StreamGrammarError: It may not stand here.
        """
        self.reader.read(chunk)
