"""Replacing a long history by its summary. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_example import compaction
from acp_example.recorder import Recorder
from acp_example.settings import Settings


class Summary:
    """The compactions of one turn; after a failed one, the turn goes on without."""

    def __init__(self, out: Recorder, settings: Settings, turn: int) -> None:
        self._out = out
        self._settings = settings
        self._turn = turn
        self._wanted = True

    def start(self) -> bool:
        """Begin a compaction, if one is due."""
        tokens = compaction.due(
            self._out.conversation, self._settings.compaction, self._settings.context_window
        )
        if tokens is None or not self._wanted:
            return False
        data = {"turn": self._turn, "reason": "threshold", "tokens": tokens}
        self._out.record("compaction/start", data)
        return True

    def commit(self, blocks: Sequence[Mapping[str, Any]], usage: Mapping[str, Any] | None) -> bool:
        """Put the summary in the history's place; False where it says nothing."""
        text = compaction.summary_text(blocks)
        if not text:
            return False
        data: dict[str, Any] = {
            "turn": self._turn,
            "summary": text,
            "llmStreamCall": True,
            "rawOutput": list(blocks),
        }
        if usage is not None:
            data["usage"] = usage
        self._out.record("compaction/summary", data)
        nodes = self._out.conversation.nodes
        message = compaction.summary_message(self._out.conversation.new_id(), text)
        kept = compaction.kept(nodes, self._settings.compaction.keep_characters)
        replace = {"op": "replace", "start": nodes[0].seq, "end": nodes[-1].seq}
        self._out.record("user/message", message, surfaceOp=replace)
        for copy in kept:
            self._out.record("user/message", copy, surfaceOp="append")
        removed = len(nodes) - len(kept)
        self._out.record(
            "compaction/end", {"turn": self._turn, "kept": len(kept), "removed": removed}
        )
        return True

    def fail(self, code: str, message: str) -> None:
        """End the compaction without a summary."""
        self._wanted = False
        error = {"message": message, "code": code}
        self._out.record("compaction/end", {"turn": self._turn, "error": error})
