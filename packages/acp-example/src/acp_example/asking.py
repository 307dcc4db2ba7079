"""What a model is asked, and what the log says about it. No I/O."""

from typing import Any

from acp_example import compaction
from acp_example.effects import CallModel
from acp_example.llm import ModelRequest, Purpose
from acp_example.recorder import Recorder
from acp_example.settings import Settings


class Asking:
    """Puts a session's questions to its model; each is logged before it is asked."""

    def __init__(self, out: Recorder, settings: Settings, turn: int) -> None:
        self._out = out
        self._settings = settings
        self._turn = turn
        self._resumed = settings.resumed

    def header(self) -> None:
        """Log what the model is told besides the history, where that has changed."""
        header = self._settings.header()
        known = self._out.conversation.header
        if known != header or self._resumed:
            reason = "resume" if self._resumed else "change" if known else "initial"
            self._resumed = False
            self._out.record("request/header", {"header": header, "reason": reason})
        context: dict[str, Any] = {
            "provider": self._settings.provider,
            "model": self._settings.model,
        }
        if self._settings.context_window is not None:
            context["contextWindow"] = self._settings.context_window
        if self._out.conversation.context != context:
            self._out.record("request/context", context)

    def call(self, step: int, purpose: Purpose) -> None:
        """Ask for a stream."""
        call = self._out.conversation.calls + 1
        data = {"turn": self._turn, "step": step, "call": call, "purpose": purpose}
        self._out.record("llm/call", data, ignorable=True)
        self._out.do(CallModel(self._summary() if purpose == "compaction" else self._question()))

    def _question(self) -> ModelRequest:
        settings = self._settings
        return ModelRequest(
            provider=settings.provider,
            model=settings.model,
            system=settings.system,
            messages=self._out.conversation.messages,
            tools=settings.schemas(),
            session_id=settings.session_id,
            lineage=settings.lineage,
            reasoning_effort=settings.reasoning_effort,
        )

    def _summary(self) -> ModelRequest:
        settings = self._settings
        return ModelRequest(
            provider=settings.provider,
            model=settings.model,
            system=compaction.SYSTEM,
            messages=compaction.request_messages(self._out.conversation.messages),
            tools=[],
            session_id=settings.session_id,
            lineage=settings.lineage,
            purpose="compaction",
            reasoning_effort=settings.reasoning_effort,
            tool_choice="none",
        )
