"""The tool calls of one step: who may run, in which order, and what came of it. No I/O."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from acp_example import updates
from acp_example.effects import Ask, StartTool, StopTool
from acp_example.exceptions import ToolError
from acp_example.permissions import OPTIONS, Answer, Judgement, grant_key
from acp_example.recorder import Recorder
from acp_example.session import result_message
from acp_example.settings import Settings
from acp_example.tools import CallInfo, Tool, ToolResult
from acp_example.tools.arguments import loads, parse
from acp_example.updates import describe
from llm_replay.chunks import Failure

_DENIALS: Mapping[str, str] = {
    "reject_once": "the user rejected this call; do not try it again",
    "reject_always": "the user rejected this call and all like it; do not try it again",
    "cancelled": "the client withdrew the question; the call was not executed",
    "timeout": "nobody answered in time; the call was not executed",
}


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a batch. Its events wait until those of the calls before it are written."""

    info: CallInfo
    name: str
    raw: str
    seq: int
    tool: Tool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    state: Literal["new", "asked", "ready", "running", "settled"] = "new"
    result: ToolResult | None = None
    fatal: bool = False
    waiting: list[tuple[str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    @property
    def exclusive(self) -> bool:
        """Whether it runs alone."""
        return self.tool is not None and self.tool.spec.mode == "exclusive"

    @property
    def signature(self) -> tuple[str, str, str]:
        """What makes two calls the same: tool, arguments in any order, visible output."""
        try:
            arguments = json.dumps(loads(self.raw), sort_keys=True)
        except ToolError:
            arguments = self.raw
        return (self.name, arguments, self.result.visible if self.result else "")


class Batch:
    """Runs one step's calls to the end: each gets a result, whatever becomes of the others."""

    def __init__(self, recorder: Recorder, settings: Settings, *, turn: int, step: int) -> None:
        self._recorder = recorder
        self._settings = settings
        self._turn = turn
        self._step = step
        self._head = 0
        self._halted = ""
        self.calls: list[Call] = []

    @property
    def settled(self) -> bool:
        """Whether every call has its result."""
        return all(call.state == "settled" for call in self.calls)

    @property
    def failure(self) -> Failure | None:
        """Why the turn must end: the first fatal call, in call order, decides."""
        for call in self.calls:
            if call.fatal and call.result is not None:
                return {"message": call.result.text, "code": call.result.code or "UNKNOWN"}
        return None

    def open(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Log and announce every call, decide about each, then start what may start."""
        self.calls = [self._log(k, block) for k, block in enumerate(blocks, 1)]
        for call in self.calls:
            self._announce(call)
        for call, judgement in [(call, self._judge(call)) for call in self.calls]:
            self._take(call, judgement)
        self._advance()

    def answered(self, k: int, answer: Answer) -> None:
        """Take in what the client says about a call; an answer nobody waits for is dropped."""
        call = next((call for call in self.calls if call.info.k == k), None)
        if call is None or call.state != "asked" or call.tool is None:
            return
        decided = {"id": call.info.position, "outcome": answer.replace("_", "-")}
        self._note(call, "approval/decided", decided)
        self._settings.policy.grants.remember(grant_key(call.tool.spec, call.arguments), answer)
        if answer in ("allow_once", "allow_always"):
            call.state = "ready"
        elif answer == "unavailable":
            call.fatal = True
            self._fail(call, "APPROVAL_UNAVAILABLE", "the client can't be asked for permission")
            self.halt("another call of this step failed")
        else:
            self._fail(call, "APPROVAL_DENIED", _DENIALS[answer])
        self._advance()

    def finished(self, k: int, result: ToolResult, *, fatal: bool = False) -> None:
        """Take in what a body gave back."""
        call = self.calls[k - 1]
        call.fatal = fatal
        self._settle(call, result)
        if fatal:
            self.halt("another call of this step failed")
        self._advance()

    def halt(self, why: str) -> None:
        """Start no more calls: what has not begun gets a result that says so."""
        self._halted = self._halted or why
        for call in self.calls:
            if call.state == "asked":
                self._recorder.do(StopTool(call.info.k))
            if call.state in ("asked", "ready"):
                self._fail(call, "ABORTED", f"not executed: {self._halted}")

    def stop(self, why: str) -> None:
        """As `halt`, and cancel what runs."""
        self.halt(why)
        for call in self.calls:
            if call.state == "running":
                self._recorder.do(StopTool(call.info.k))

    def _log(self, k: int, block: Mapping[str, Any]) -> Call:
        info = CallInfo(
            lineage=self._settings.lineage,
            turn=self._turn,
            step=self._step,
            k=k,
            call_id=block["id"],
        )
        data = {
            "turn": self._turn,
            "step": self._step,
            "callId": block["id"],
            "name": block["name"],
            "arguments": block["arguments"],
        }
        seq = self._recorder.record("tool/call", data)
        return Call(info=info, name=block["name"], raw=block["arguments"], seq=seq)

    def _announce(self, call: Call) -> None:
        call.tool = self._settings.tool(call.name)
        self._recorder.tell(
            {"sessionUpdate": "tool_call", **self._described(call), "status": "pending"}
        )

    def _described(self, call: Call) -> dict[str, Any]:
        return describe(
            self._recorder.frames.call(call.info.position),
            call.name,
            call.raw,
            call.tool,
            self._settings.locate,
        )

    def _judge(self, call: Call) -> Judgement:
        if call.tool is None:
            known = ", ".join(repr(tool.spec.name) for tool in self._settings.offered) or "none"
            message = f"no tool is named {call.name!r}; there is {known}"
            return Judgement(verdict="deny", source="loop", code="TOOL_NOT_FOUND", message=message)
        try:
            call.arguments = parse(call.raw, call.tool.spec.schema)
        except ToolError as error:
            return Judgement(verdict="deny", source="loop", code=error.code, message=error.message)
        return self._settings.policy.judge(call.tool.spec, call.arguments)

    def _take(self, call: Call, judgement: Judgement) -> None:
        match judgement.verdict:
            case "deny":
                self._fail(call, judgement.code, judgement.message)
            case "allow":
                call.state = "ready"
            case _:
                call.state = "asked"
                asked = {
                    "id": call.info.position,
                    "toolName": call.name,
                    "callId": call.info.call_id,
                    "reason": judgement.source,
                }
                self._note(call, "approval/asked", asked)
                shown = {
                    **self._described(call),
                    "status": "pending",
                    **self._recorder.frames.meta(),
                }
                request = {"toolCall": shown, "options": [dict(option) for option in OPTIONS]}
                self._recorder.do(Ask(call.info.k, request))

    def _advance(self) -> None:
        """Start every call whose turn it is. An exclusive call is a barrier, both ways."""
        running = sum(call.state == "running" for call in self.calls)
        for place, call in enumerate(self.calls):
            if call.state == "ready":
                before = self.calls[:place]
                if call.exclusive and any(other.state != "settled" for other in before):
                    return
                if running >= self._settings.limits.parallel:
                    return
                self._start(call)
                running += 1
            if call.exclusive and call.state != "settled":
                return

    def _start(self, call: Call) -> None:
        call.state = "running"
        self._recorder.tell(updates.call_started(self._recorder.frames.call(call.info.position)))
        assert call.tool is not None  # noqa: S101  only a known tool becomes ready
        self._recorder.do(StartTool(call.info.k, call.tool, call.arguments, call.info))

    def _fail(self, call: Call, code: str, message: str) -> None:
        self._settle(call, error_result(code, message))

    def _settle(self, call: Call, result: ToolResult) -> None:
        call.result = result
        call.state = "settled"
        data: dict[str, Any] = {
            "turn": self._turn,
            "step": self._step,
            "message": result_message(
                message_id=self._recorder.conversation.new_id(),
                call_id=call.info.call_id,
                content=_content(result),
                is_error=result.is_error,
            ),
        }
        if result.is_error:
            data["error"] = {"name": "ToolError", "code": result.code}
        if meta := _meta(result):
            data["meta"] = meta
        self._note(call, "tool/result", data, sourceEventSeqs=[call.seq], surfaceOp="append")
        name = self._recorder.frames.call(call.info.position)
        if result.plan is not None:
            self._recorder.tell(updates.plan(result.plan, name))
        self._recorder.tell(updates.call_settled(name, result))

    def _note(self, call: Call, kind: str, data: dict[str, Any], **envelope: Any) -> None:  # noqa: ANN401
        """Log an event of a call, once it is that call's turn."""
        call.waiting.append((kind, data, envelope))
        while self._head < len(self.calls):
            head = self.calls[self._head]
            for waiting_kind, waiting_data, waiting_envelope in head.waiting:
                self._recorder.record(waiting_kind, waiting_data, **waiting_envelope)
            head.waiting.clear()
            if head.state != "settled":
                return
            self._head += 1


def error_result(code: str, message: str) -> ToolResult:
    """Return what a model reads of a call that failed."""
    return ToolResult(text=f"Error [{code}]: {message}", is_error=True, code=code)


def _content(result: ToolResult) -> list[dict[str, Any]]:
    images = [
        {"type": "image", "attachment": {"mimeType": image["mimeType"], "data": image["data"]}}
        for image in result.images
    ]
    return [{"type": "text", "text": result.visible}, *images]


def _meta(result: ToolResult) -> dict[str, Any]:
    """Return what the log keeps of a result besides its text."""
    return {**result.details, **({} if result.plan is None else {"plan": result.plan})}


class RepeatGuard:
    """Counts calls that bring nothing new: same tool, same arguments, same output."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._counts: dict[tuple[str, str, str], int] = {}

    def tripped(self, calls: Sequence[Call]) -> str | None:
        """Count a step's calls and return the name of a tool that was called too often."""
        found: list[str] = []
        for call in calls:
            count = self._counts[call.signature] = self._counts.get(call.signature, 0) + 1
            if self._limit is not None and count > self._limit:
                found.append(call.name)
        return found[0] if found else None
