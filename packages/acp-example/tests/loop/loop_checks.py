"""What holds for every log and every transcript, whatever happened."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_example.session import Conversation
from llm_replay.session_log import SessionLog

REPAIRED = (
    "Error [SESSION_RESUME_INTERRUPTED]: the session was interrupted before this call was "
    "known to have finished; it may have run, in part or not at all"
)


def conversation(log: SessionLog) -> Conversation:
    """Fold a log anew."""
    return Conversation(
        now=lambda: 0,
        new_id=lambda: "new",
        events=log.events,
        seed_length=log.header.seed_length,
    )


def check_turns(events: Sequence[Mapping[str, Any]]) -> None:
    """Check that every turn and every step ends once, and nothing else is open at the end."""
    opened: list[str] = []
    for event in events:
        kind, _, edge = event["type"].partition("/")
        if kind in ("turn", "step") and edge == "start":
            assert opened == ([] if kind == "turn" else ["turn"]), event
            opened.append(kind)
        elif kind in ("turn", "step") and edge == "end":
            assert opened.pop() == kind, event
    assert opened == []


def check_batches(events: Sequence[Mapping[str, Any]]) -> None:
    """Check the order of each step: its calls first, then their results in the same order."""
    calls: list[str] = []
    for event in events:
        if event["type"] == "step/start":
            calls = []
        elif event["type"] == "tool/call":
            calls.append(event["data"]["callId"])
        elif event["type"] == "tool/result":
            call = event["data"]["message"]["source"]["callId"]
            if calls or event["sourceEventSeqs"]:  # one repaired before it began has no event
                assert call == calls.pop(0)
        elif event["type"] == "step/end":
            assert calls == [], "a call has no result"


def check_updates(updates: Sequence[Mapping[str, Any]]) -> None:
    """Check that every call is announced first, and settled once, and last."""
    states: dict[str, str] = {}
    for update in updates:
        call = update.get("toolCallId")
        if call is None:
            continue
        if update["sessionUpdate"] == "tool_call":
            assert call not in states, f"{call} is announced twice"
        else:
            assert states[call] in ("pending", "in_progress"), f"{call} goes on after its end"
        states[call] = update["status"]
    assert all(state in ("completed", "failed") for state in states.values()), states
