"""Handing a task to a subagent: a session of its own, whose answer is the call's result."""

from collections.abc import Mapping
from typing import Any

from acp_example.effects import Outcome
from acp_example.live import Session
from acp_example.permissions import Mode
from acp_example.session import Conversation
from acp_example.tools import CallInfo, ToolError, ToolResult
from acp_example.updates import FrameNames


async def delegate(
    parent: Session, mode: Mode, call: CallInfo, arguments: Mapping[str, Any]
) -> ToolResult:
    """Run a child session to its end.

    The log is begun before anything is awaited, so siblings start in call order. Cancelling this
    cancels the child, whose log then ends in order.

    Raises:
        ToolError: The child failed (SUBAGENT_FAILED).
    """
    child = _child(parent, mode, call, fork=arguments.get("mode") == "fork")
    try:
        outcome = await child.prompt([{"type": "text", "text": arguments["prompt"]}])
    finally:
        child.close()
    return _result(outcome, child.lineage)


def _child(parent: Session, mode: Mode, call: CallInfo, *, fork: bool) -> Session:
    host = parent.host
    seed = parent.conversation.events[: parent.conversation.last_finished] if fork else []
    header = _header(parent, call, seed_length=len(seed))
    child = Session(
        host=host,
        header=header,
        conversation=Conversation(
            now=host.clock.now_ms, new_id=host.new_id, events=seed, seed_length=len(seed)
        ),
        writer=host.store.create(header),
        client=parent.client,
        mode=mode,
        provider=parent.provider,
        model=parent.model,
        reasoning_effort=parent.reasoning_effort,
        frames=FrameNames(prefix=f"{header['lineage']}:", parent=parent.frames.call(call.position)),
        resumed=bool(seed),
        grants=parent.grants,
    )
    for event in seed:
        child.writer.write(event)
    if seed:
        child.record("session/end-seed", {})
    return child


def _header(parent: Session, call: CallInfo, *, seed_length: int) -> dict[str, Any]:
    return {
        "type": "session",
        "version": 1,
        "id": parent.host.new_id(),
        "createdAt": parent.host.clock.now_ms(),
        "cwd": str(parent.cwd),
        "parentSession": parent.header["id"],
        **({"seedLength": seed_length} if seed_length else {}),
        "origin": "subagent",
        "delegationDepth": parent.depth + 1,
        "lineage": f"{parent.lineage}/{call.position}",
    }


def _result(outcome: Outcome, lineage: str) -> ToolResult:
    if outcome.fault is not None:
        raise outcome.fault
    if outcome.code is not None:
        raise ToolError("SUBAGENT_FAILED", f"the subagent failed: {outcome.message}")
    notice = None
    if outcome.stop_reason != "end_turn":
        notice = f"the subagent stopped early: {outcome.stop_reason}"
    return ToolResult(
        text=outcome.text.strip() or "(the subagent gave no answer)",
        notice=notice,
        details={"subagent": lineage},
    )
