"""A turn: tell it what happened, and it says what to do next. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_example import compaction, updates
from acp_example.attempt import Attempt, QuietAttempt
from acp_example.batch import Batch, RepeatGuard
from acp_example.effects import (
    CallModel,
    Done,
    Effect,
    Outcome,
    Sleep,
    StopModel,
    StopSleep,
)
from acp_example.grammar import StreamGrammarError
from acp_example.llm import ModelRequest, Purpose, failure_of
from acp_example.permissions import Answer
from acp_example.recorder import Recorder
from acp_example.session import Conversation
from acp_example.settings import Settings
from acp_example.tools import ToolResult
from acp_example.updates import FrameNames
from llm_replay.chunks import Failure
from llm_replay.exceptions import ReplayError

_EMPTY: Final[Failure] = {
    "message": "the model answered with nothing that can be shown",
    "code": "EMPTY_RESPONSE",
}
_BLANK_SUMMARY: Final[Failure] = {"message": "the summary is blank", "code": "EMPTY_SUMMARY"}
_CANCELLED: Final = "the turn was cancelled"


class Turn:
    """One prompt to its stop reason. Every method returns what must be done now, in order.

    At any time exactly one thing is under way: a model call, a batch of tools, or a wait. A
    cancel stops it, and its end then ends the turn.
    """

    def __init__(
        self, conversation: Conversation, settings: Settings, frames: FrameNames | None = None
    ) -> None:
        self.settings = settings
        self._conversation = conversation
        self._out = Recorder(conversation, frames or FrameNames())
        self._turn = conversation.turn + 1
        self._step = 0
        self._message: Mapping[str, Any] = {}
        self._guard = RepeatGuard(settings.limits.repeats)
        self._attempt: Attempt | None = None
        self._purpose: Purpose = "turn"
        self._retries = 0
        self._batch: Batch | None = None
        self._waiting = False
        self._broken: StreamGrammarError | None = None
        self._cancelled: str | None = None
        self._fault: BaseException | None = None
        self._summarise = True
        self._resumed = settings.resumed
        self._text = ""
        self._over = False

    def begin(self, message: Mapping[str, Any]) -> list[Effect]:
        """Start the turn with what the user said."""
        self._message = message
        self._out.record("turn/start", {"turn": self._turn})
        if self._cancelled:
            self._end_cancelled()
        else:
            self._next()
        return self._out.take()

    def model_chunk(self, chunk: Mapping[str, Any]) -> list[Effect]:
        """Take in the next chunk of the stream."""
        if self._attempt is None or self._cancelled or self._broken:
            return []
        try:
            self._attempt.chunk(chunk)
        except StreamGrammarError as error:
            self._broken = error
            self._out.do(StopModel())
        return self._out.take()

    def model_ended(self, error: BaseException | None = None) -> list[Effect]:
        """Take in that the stream is closed: at its end, by an error, or because it was stopped."""
        attempt, self._attempt = self._attempt, None
        broken, self._broken = self._broken, None
        assert attempt is not None  # noqa: S101  a stream ends once
        if isinstance(error, ReplayError):
            self._fault = error
            self._end_fault()
        elif self._cancelled:
            self._interrupted(attempt)
        elif error is not None or broken is not None:
            self._failed(attempt, failure_of(broken or error or Exception()))
        else:
            self._answered(attempt)
        return self._out.take()

    def permission(self, k: int, answer: Answer) -> list[Effect]:
        """Take in the client's answer about a call."""
        if self._batch is not None:
            self._batch.answered(k, answer)
            self._after_batch()
        return self._out.take()

    def tool_finished(self, k: int, result: ToolResult, *, fatal: bool = False) -> list[Effect]:
        """Take in a call's result."""
        if self._batch is not None:
            self._batch.finished(k, result, fatal=fatal)
            self._after_batch()
        return self._out.take()

    def tool_faulted(self, k: int, result: ToolResult, fault: BaseException) -> list[Effect]:
        """Take in that a body met a fault which is nobody's failure: stop all, then raise it."""
        if self._batch is not None:
            self._fault = self._fault or fault
            self._batch.stop("another call of this step failed")
            self._batch.finished(k, result)
            self._after_batch()
        return self._out.take()

    def waited(self) -> list[Effect]:
        """Take in that a wait is over, at its end or because it was stopped."""
        self._waiting = False
        if self._cancelled:
            self._end_cancelled_wait()
        else:
            data = {"retryId": self._retry_id, "turn": self._turn, "step": self._step}
            self._out.record("llm/retry-started", {**data, "retry": self._retries})
            self._call_model()
        return self._out.take()

    def cancel(self, by: str = "user") -> list[Effect]:
        """Stop what is under way; the second time changes nothing."""
        if self._cancelled or self._over:
            return []
        self._cancelled = by
        if self._waiting:
            self._out.do(StopSleep())
        elif self._attempt is not None:
            self._out.do(StopModel())
        elif self._batch is not None:
            self._batch.stop(_CANCELLED)
            self._after_batch()
        return self._out.take()

    def _next(self) -> None:
        """Go on with the next step, after a summary of the history where that is due."""
        tokens = compaction.due(
            self._conversation, self.settings.compaction, self.settings.context_window
        )
        self._retries = 0
        if tokens is not None and self._summarise:
            self._purpose = "compaction"
            data = {"turn": self._turn, "reason": "threshold", "tokens": tokens}
            self._out.record("compaction/start", data)
            self._call_model()
        else:
            self._begin_step()

    def _begin_step(self) -> None:
        rounds = self.settings.limits.rounds
        if rounds is not None and self._step >= rounds:
            self._end({"kind": "max-turn-requests"}, Outcome(stop_reason="max_turn_requests"))
            return
        self._step += 1
        self._purpose = "turn"
        self._out.record("step/start", {"turn": self._turn, "step": self._step})
        if self._step == 1:
            self._out.record("user/message", self._message, surfaceOp="append")
        self._record_header()
        self._call_model()

    def _record_header(self) -> None:
        header = self.settings.header()
        known = self._conversation.header
        if known != header or self._resumed:
            reason = "resume" if self._resumed else "change" if known else "initial"
            self._resumed = False
            self._out.record("request/header", {"header": header, "reason": reason})
        context: dict[str, Any] = {
            "provider": self.settings.provider,
            "model": self.settings.model,
        }
        if self.settings.context_window is not None:
            context["contextWindow"] = self.settings.context_window
        if self._conversation.context != context:
            self._out.record("request/context", context)

    def _call_model(self) -> None:
        call = {
            "turn": self._turn,
            "step": self._step,
            "call": self._conversation.calls + 1,
            "purpose": self._purpose,
        }
        kind = Attempt if self._purpose == "turn" else QuietAttempt
        self._attempt = kind(self._out, turn=self._turn, step=self._step)
        self._out.record("llm/call", call, ignorable=True)
        self._out.do(CallModel(self._request()))

    def _request(self) -> ModelRequest:
        settings = self.settings
        messages = self._conversation.messages
        summing = self._purpose == "compaction"
        return ModelRequest(
            provider=settings.provider,
            model=settings.model,
            system=compaction.SYSTEM if summing else settings.system,
            messages=compaction.request_messages(messages) if summing else messages,
            tools=[] if summing else settings.schemas(),
            session_id=settings.session_id,
            lineage=settings.lineage,
            purpose=self._purpose,
            reasoning_effort=settings.reasoning_effort,
            tool_choice="none" if summing else None,
        )

    def _answered(self, attempt: Attempt) -> None:
        """Judge a stream that ended by itself."""
        try:
            attempt.reader.close()
        except StreamGrammarError as error:
            self._failed(attempt, failure_of(error))
            return
        assembler = attempt.reader.assembler
        kind = assembler.finish["kind"]
        blocks = assembler.blocks()
        if kind in ("error", "aborted"):
            self._failed(attempt, assembler.finish["failure"])
        elif self._purpose == "compaction":
            self._summarised(attempt, blocks)
        elif kind == "max-tokens":
            self._commit(attempt, blocks)
            self._end({"kind": "max-tokens"}, Outcome(stop_reason="max_tokens", text=self._text))
        elif kind == "refusal":
            self._commit(attempt, [block for block in blocks if block["type"] != "tool-call"])
            self._end({"kind": "refusal"}, Outcome(stop_reason="refusal", text=self._text))
        else:
            self._continue(attempt, blocks)

    def _continue(self, attempt: Attempt, blocks: Sequence[Mapping[str, Any]]) -> None:
        calls = [block for block in blocks if block["type"] == "tool-call"]
        if not calls and not _says_something(blocks):
            self._failed(attempt, _EMPTY)
            return
        self._commit(attempt, blocks)
        if not calls:
            self._end({"kind": "completed"}, Outcome(stop_reason="end_turn", text=self._text))
            return
        self._batch = Batch(self._out, self.settings, turn=self._turn, step=self._step)
        self._batch.open(calls)
        self._after_batch()

    def _commit(
        self,
        attempt: Attempt,
        blocks: Sequence[Mapping[str, Any]],
        *,
        interrupted: bool = False,
    ) -> None:
        """Make an answer part of the history."""
        source = {
            "kind": "model",
            "provider": self.settings.provider,
            "model": self.settings.model,
        }
        message = {
            "id": self._conversation.new_id(),
            "role": "assistant",
            "content": list(blocks),
            "source": source,
        }
        data: dict[str, Any] = {"turn": self._turn, "step": self._step, "message": message}
        assembler = attempt.reader.assembler
        if assembler.usage is not None:
            data["usage"] = assembler.usage
        if interrupted:
            data["interrupted"] = True
        elif (state := assembler.replay_state()) is not None:
            message["replayState"] = state
        self._out.record(
            "assistant/message", data, sourceEventSeqs=attempt.seqs, surfaceOp="append"
        )
        self._text = "".join(block["text"] for block in blocks if block["type"] == "text")
        window = self.settings.context_window
        if assembler.usage is not None and window is not None:
            self._out.tell(updates.usage(self._conversation.context_tokens or 0, window))

    def _after_batch(self) -> None:
        """Go on once every call has its result."""
        batch = self._batch
        if batch is None or not batch.settled:
            return
        self._batch = None
        if self._fault is not None:
            self._end_fault()
        elif self._cancelled:
            self._end_cancelled()
        elif (fatal := batch.fatal) is not None and fatal.result is not None:
            self._end_failed({"message": fatal.result.text, "code": fatal.result.code or "UNKNOWN"})
        elif (name := self._guard.tripped(batch.calls)) is not None:
            limit = self.settings.limits.repeats
            message = f"{name!r} was called more than {limit} times with the same outcome"
            self._end_failed({"message": message, "code": "REPEATED_TOOL_CALL"})
        else:
            self._out.record("step/end", {"turn": self._turn, "step": self._step})
            self._next()

    def _failed(self, attempt: Attempt, failure: Failure) -> None:
        """Try a failed call again, unless the policy or what the client saw forbids it."""
        policy = self.settings.retry_policy
        delay = None if attempt.shown else self.settings.retry(failure, policy, self._retries + 1)
        if delay is None:
            self._give_up(failure)
            return
        self._retries += 1
        data: dict[str, Any] = {
            "retryId": self._retry_id,
            "turn": self._turn,
            "step": self._step,
            "provider": self.settings.provider,
            "mode": policy.mode,
            "policyKey": self.settings.provider,
            "retry": self._retries,
        }
        if policy.mode == "normal":
            data["maxRetries"] = policy.max_retries
        self._out.record("llm/retry", {**data, "delayMs": delay, "failure": failure})
        self._waiting = True
        self._out.do(Sleep(0 if policy.instant else delay))

    @property
    def _retry_id(self) -> str:
        return f"{self._turn}.{self._step}-{self._purpose}-{self._retries}"

    def _give_up(self, failure: Failure) -> None:
        if self._purpose == "compaction":
            # A summary only helps: without one the turn goes on with the history as it is.
            self._summarise = False
            self._end_compaction(error=failure)
            self._begin_step()
        else:
            self._end_failed(failure)

    def _summarised(self, attempt: Attempt, blocks: Sequence[Mapping[str, Any]]) -> None:
        summary = compaction.summary_text(blocks)
        if not summary:
            self._failed(attempt, _BLANK_SUMMARY)
            return
        data: dict[str, Any] = {
            "turn": self._turn,
            "summary": summary,
            "llmStreamCall": True,
            "rawOutput": list(blocks),
        }
        if attempt.reader.assembler.usage is not None:
            data["usage"] = attempt.reader.assembler.usage
        self._out.record("compaction/summary", data)
        nodes = self._conversation.nodes
        message = compaction.summary_message(self._conversation.new_id(), summary)
        kept = compaction.kept(nodes, self.settings.compaction.keep_characters)
        replace = {"op": "replace", "start": nodes[0].seq, "end": nodes[-1].seq}
        self._out.record("user/message", message, surfaceOp=replace)
        for copy in kept:
            self._out.record("user/message", copy, surfaceOp="append")
        self._end_compaction(kept=len(kept), removed=len(nodes) - len(kept))
        self._begin_step()

    def _end_compaction(self, **facts: object) -> None:
        self._out.record("compaction/end", {"turn": self._turn, **facts})

    def _interrupted(self, attempt: Attempt) -> None:
        """Keep what was streamed of an answer that was cancelled."""
        if self._purpose == "compaction":
            self._end_cancelled_wait()
            return
        blocks = attempt.reader.assembler.interrupted_blocks()
        if blocks:
            self._commit(attempt, blocks, interrupted=True)
        self._end_cancelled()

    def _end_cancelled_wait(self) -> None:
        if self._purpose == "compaction":
            self._end_compaction(error={"message": _CANCELLED, "code": "ABORTED"})
        self._end_cancelled()

    def _end_cancelled(self) -> None:
        reason = {"kind": "aborted", "reason": {"kind": self._cancelled}}
        self._end(reason, Outcome(stop_reason="cancelled", text=self._text))

    def _end_failed(self, failure: Failure) -> None:
        outcome = Outcome(code=failure["code"], message=failure["message"])
        self._end({"kind": "error", **failure}, outcome)

    def _end_fault(self) -> None:
        fault = self._fault
        message = str(fault)
        if self._purpose == "compaction":
            self._end_compaction(error={"message": message, "code": "REPLAY_FAULT"})
        outcome = Outcome(code="REPLAY_FAULT", message=message, fault=fault)
        self._end({"kind": "error", "message": message, "code": "REPLAY_FAULT"}, outcome)

    def _end(self, reason: Mapping[str, Any], outcome: Outcome) -> None:
        if self._step == 0:
            self._out.record("user/message", self._message, surfaceOp="append")
        if self._conversation.open_step is not None:
            self._out.record("step/end", {"turn": self._turn, "step": self._step})
        self._out.record("turn/end", {"turn": self._turn, "reason": reason})
        self._over = True
        self._out.do(Done(outcome))


def _says_something(blocks: Sequence[Mapping[str, Any]]) -> bool:
    return any(block["type"] == "text" and block["text"].strip() for block in blocks)
