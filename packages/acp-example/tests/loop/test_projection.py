from loop_bench import Bench, FakeTool, Json, Make

from acp_example.playback import Playback
from acp_example.session import _FOLDS
from llm_replay.scripted_model import call, round_, say, think

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


def told(agent: Bench, kind: str) -> list[Json]:
    """Return the updates that the events of a kind become."""
    playback = Playback(tool=lambda _name: None, locate=str)
    updates = []
    for event in agent.events:
        made = list(playback.updates([event]))
        updates += made if event["type"] == kind else []
    return updates


def test_projection_is_total(bench: Make) -> None:
    agent = bench(
        round_(think("hm"), say("I look"), call("c", "look")),
        say("ok"),
        tools=[FakeTool("look", kind="execute")],
        permission_mode="workspace-write",
    )
    agent.client.queue.append("allow_once")

    agent.prompt()

    seen = {event["type"] for event in agent.events}
    assert seen <= INTERNAL | TOLD
    for kind in seen:
        assert bool(told(agent, kind)) == (kind in TOLD), kind
    for update in agent.client.updates:
        assert UPDATES[update["sessionUpdate"]] <= set(update)


def test_every_event_that_a_history_is_folded_from_is_classified() -> None:
    assert set(_FOLDS) <= INTERNAL | TOLD
