from loop_bench import Json, Make
from loop_everything import everything

from acp_example.playback import Playback
from acp_example.session import _FOLDS

# What a client is never told: it is bookkeeping, or it was shown while it was streamed.
INTERNAL = {
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "request/header",
    "request/context",
    "llm/call",
    "llm/retry",
    "llm/retry-started",
    "assistant/chunk",
    "approval/asked",
    "approval/decided",
    "compaction/start",
    "compaction/summary",
    "compaction/end",
    "permission/mode",
    "session/model",
    "session/end-seed",
}
TOLD = {"user/message", "assistant/message", "tool/call", "tool/result"}

UPDATES = {
    "user_message_chunk": {"content"},
    "agent_message_chunk": {"content"},
    "agent_thought_chunk": {"content"},
    "tool_call": {"toolCallId", "title", "kind", "status", "rawInput"},
    "tool_call_update": {"toolCallId", "status"},
    "plan": {"entries"},
    "usage_update": {"used", "size"},
}


def told(events: list[Json]) -> set[str]:
    """Return the kinds of event that become updates."""
    playback = Playback(tool=lambda _name: None, locate=str)
    return {event["type"] for event in events if list(playback.updates([event]))}


def test_projection_is_total(bench: Make) -> None:
    agent = everything(bench)

    events = [*agent.events, *agent.log("1/2.1.1").events]

    assert {event["type"] for event in events} == INTERNAL | TOLD
    assert told(events) == TOLD
    live = list(agent.client.updates)
    agent.reload()
    for update in [*live, *agent.client.updates]:
        assert UPDATES[update["sessionUpdate"]] <= set(update)
    kinds = {update["sessionUpdate"] for update in [*live, *agent.client.updates]}
    assert kinds == set(UPDATES)


def test_every_event_that_a_history_is_folded_from_is_classified() -> None:
    assert set(_FOLDS) <= INTERNAL | TOLD
