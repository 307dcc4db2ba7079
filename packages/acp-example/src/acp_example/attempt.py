"""One model call while it streams. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_example import updates
from acp_example.grammar import StreamReader
from acp_example.recorder import Recorder
from acp_example.settings import Settings

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
        self.reader.read(chunk)
        match chunk["type"]:
            case "text-delta":
                self._show("text", chunk["text"])
            case "reasoning-delta":
                self._show("reasoning", chunk["text"])
            case "block-end" if self._is_whole(chunk):
                self._show(chunk["block"]["type"], chunk["block"]["text"])

    def commit(
        self,
        blocks: Sequence[Mapping[str, Any]],
        settings: Settings,
        *,
        interrupted: bool = False,
    ) -> str:
        """Make the answer part of the history and return its text."""
        conversation, assembler = self._recorder.conversation, self.reader.assembler
        source = {"kind": "model", "provider": settings.provider, "model": settings.model}
        message = {
            "id": conversation.new_id(),
            "role": "assistant",
            "content": list(blocks),
            "source": source,
        }
        if not interrupted and (state := assembler.replay_state()) is not None:
            message["replayState"] = state
        data: dict[str, Any] = {"turn": self._turn, "step": self._step, "message": message}
        if assembler.usage is not None:
            data["usage"] = assembler.usage
        if interrupted:
            data["interrupted"] = True
        self._recorder.record(
            "assistant/message", data, sourceEventSeqs=self.seqs, surfaceOp="append"
        )
        window, used = settings.context_window, conversation.context_tokens
        if assembler.usage is not None and window is not None and used is not None:
            self._recorder.tell(updates.usage(used, window))
        return "".join(block["text"] for block in blocks if block["type"] == "text")

    def _is_whole(self, chunk: Mapping[str, Any]) -> bool:
        """Say whether a block came in one piece, without deltas before it."""
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
