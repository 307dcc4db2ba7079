"""A turn: tell it what happened, and it says what to do next. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_example.asking import Asking
from acp_example.attempt import Attempt, QuietAttempt
from acp_example.batch import Batch, RepeatGuard
from acp_example.effects import Done, Effect, Outcome, StopModel, StopSleep
from acp_example.grammar import StreamGrammarError
from acp_example.llm import Purpose, failure_of
from acp_example.permissions import Answer
from acp_example.recorder import Recorder
from acp_example.retries import Retries
from acp_example.session import Conversation
from acp_example.settings import Settings
from acp_example.summary import Summary
from acp_example.tools import ToolResult
from acp_example.updates import FrameNames
from llm_replay.chunks import Failure
from llm_replay.exceptions import ReplayError

_CANCELLED: Final = "the turn was cancelled"
_FAULT: Final = "REPLAY_FAULT"
_EMPTY: Final[Failure] = {
    "message": "the model answered with nothing that can be shown",
    "code": "EMPTY_RESPONSE",
}
_BLANK_SUMMARY: Final[Failure] = {"message": "the summary is blank", "code": "EMPTY_SUMMARY"}
_STOPS: Final[Mapping[str, str]] = {"max-tokens": "max_tokens", "refusal": "refusal"}


class Turn:
    """One prompt to its stop reason. Every method returns what must be done now, in order.

    At any time exactly one thing is under way: a model call, a batch of tools, or a wait. A
    cancel stops it, and its end then ends the turn.
    """

    def __init__(
        self, conversation: Conversation, settings: Settings, frames: FrameNames | None = None
    ) -> None:
        self._settings = settings
        self._conversation = conversation
        self._turn = conversation.turn + 1
        self._out = Recorder(conversation, frames or FrameNames())
        self._asking = Asking(self._out, settings, self._turn)
        self._retries = Retries(self._out, settings, self._turn)
        self._summary = Summary(self._out, settings, self._turn)
        self._guard = RepeatGuard(settings.limits.repeats)
        self._step = 0
        self._calls = 0
        self._tokens = conversation.totals.total
        self._message: Mapping[str, Any] = {}
        self._purpose: Purpose = "turn"
        self._attempt: Attempt | None = None
        self._broken: StreamGrammarError | None = None
        self._batch: Batch | None = None
        self._waiting = False
        self._cancelled: str | None = None
        self._fault: BaseException | None = None
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
        """Take in that the stream is closed: at its end, by an error, or as it was stopped."""
        attempt, self._attempt = self._attempt, None
        broken, self._broken = self._broken, None
        if attempt is None:
            return []
        if isinstance(error, ReplayError):
            self._fault = error
            self._end_fault()
        elif self._cancelled:
            self._interrupted(attempt)
        elif broken is not None:
            self._failed(attempt, failure_of(broken))
        elif error is not None:
            self._failed(attempt, failure_of(error))
        else:
            self._answered(attempt)
        return self._out.take()

    def waited(self) -> list[Effect]:
        """Take in that a wait is over, at its end or as it was stopped."""
        self._waiting = False
        if self._cancelled:
            self._end_cancelled()
        else:
            self._retries.started()
            self._call()
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
            self._batch.finished(k, result, fatal=True)
            self._batch.stop("another call of this step failed")
            self._after_batch()
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
        if self._exhausted is None and self._summary.start():
            self._purpose = "compaction"
            self._retries.reset()
            self._call()
        else:
            self._begin_step()

    @property
    def _exhausted(self) -> str | None:
        spent = self._conversation.totals.total - self._tokens
        return self._settings.limits.reached(rounds=self._step, calls=self._calls, tokens=spent)

    def _begin_step(self) -> None:
        if (stop := self._exhausted) is not None:
            self._end({"kind": stop.replace("_", "-")}, Outcome(stop_reason=stop))
            return
        self._step += 1
        self._purpose = "turn"
        self._retries.reset()
        self._out.record("step/start", {"turn": self._turn, "step": self._step})
        if self._step == 1:
            self._out.record("user/message", self._message, surfaceOp="append")
        self._asking.header()
        self._call()

    def _call(self) -> None:
        kind = Attempt if self._purpose == "turn" else QuietAttempt
        self._attempt = kind(self._out, turn=self._turn, step=self._step)
        self._asking.call(self._step, self._purpose)

    def _answered(self, attempt: Attempt) -> None:
        """Judge a stream that ended by itself."""
        try:
            attempt.reader.close()
        except StreamGrammarError as error:
            self._failed(attempt, failure_of(error))
            return
        assembler = attempt.reader.assembler
        kind, blocks = assembler.finish["kind"], assembler.blocks()
        if kind in ("error", "aborted"):
            self._failed(attempt, assembler.finish["failure"])
        elif self._purpose == "compaction":
            if self._summary.commit(blocks, assembler.usage):
                self._begin_step()
            else:
                self._failed(attempt, _BLANK_SUMMARY)
        elif kind in _STOPS:
            kept = [block for block in blocks if block["type"] != "tool-call"]
            self._text = attempt.commit(kept, self._settings)
            self._end({"kind": kind}, Outcome(stop_reason=_STOPS[kind], text=self._text))
        else:
            self._continue(attempt, blocks)

    def _continue(self, attempt: Attempt, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Run the tools of a complete answer, or end the turn with it."""
        calls = [block for block in blocks if block["type"] == "tool-call"]
        if not calls and not _says_something(blocks):
            self._failed(attempt, _EMPTY)
            return
        self._text = attempt.commit(blocks, self._settings)
        if not calls:
            self._end({"kind": "completed"}, Outcome(stop_reason="end_turn", text=self._text))
            return
        self._batch = Batch(self._out, self._settings, turn=self._turn, step=self._step)
        self._batch.open(calls)
        self._after_batch()

    def _after_batch(self) -> None:
        """Go on once every call has its result."""
        batch = self._batch
        if batch is None or not batch.settled:
            return
        self._batch = None
        self._calls += len(batch.calls)
        if self._fault is not None:
            self._end_fault()
        elif self._cancelled:
            self._end_cancelled()
        elif (failure := batch.failure) is not None:
            self._end_failed(failure)
        elif (name := self._guard.tripped(batch.calls)) is not None:
            limit = self._settings.limits.repeats
            message = f"{name!r} was called more than {limit} times with the same outcome"
            self._end_failed({"message": message, "code": "REPEATED_TOOL_CALL"})
        else:
            self._out.record("step/end", {"turn": self._turn, "step": self._step})
            self._next()

    def _failed(self, attempt: Attempt, failure: Failure) -> None:
        """Try a failed call again, unless the policy or what the client saw forbids it."""
        if not attempt.shown and self._retries.wait(
            failure, step=self._step, purpose=self._purpose
        ):
            self._waiting = True
        elif self._purpose == "compaction":
            # A summary only helps: without one the turn goes on with the history as it is.
            self._summary.fail(failure["code"], failure["message"])
            self._begin_step()
        else:
            self._end_failed(failure)

    def _interrupted(self, attempt: Attempt) -> None:
        """Keep what was streamed of an answer that was cancelled."""
        if self._purpose == "turn":
            blocks = attempt.reader.assembler.interrupted_blocks()
            if blocks:
                self._text = attempt.commit(blocks, self._settings, interrupted=True)
        self._end_cancelled()

    def _end_cancelled(self) -> None:
        if self._purpose == "compaction":
            self._summary.fail("ABORTED", _CANCELLED)
        reason = {"kind": "aborted", "reason": {"kind": self._cancelled}}
        self._end(reason, Outcome(stop_reason="cancelled", text=self._text))

    def _end_failed(self, failure: Failure) -> None:
        outcome = Outcome(code=failure["code"], message=failure["message"])
        self._end({"kind": "error", **failure}, outcome)

    def _end_fault(self) -> None:
        message = str(self._fault)
        if self._purpose == "compaction":
            self._summary.fail(_FAULT, message)
        outcome = Outcome(code=_FAULT, message=message, fault=self._fault)
        self._end({"kind": "error", "message": message, "code": _FAULT}, outcome)

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
