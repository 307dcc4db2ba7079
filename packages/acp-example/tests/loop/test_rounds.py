import asyncio

import pytest
from loop_bench import FakeTool, Json, Make

from acp_example.tools import CallInfo, ToolContext
from acp_example.tools.read import Read
from llm_replay.scripted_model import call, raw, round_, say

EDITORS = [
    FakeTool("write", path_policy="write", kind="edit"),
    FakeTool("bash", kind="execute"),
    FakeTool("read", path_policy="read", kind="read"),
    FakeTool("edit", path_policy="write", kind="edit"),
]


def test_text_round_without_calls_is_final(bench: Make) -> None:
    agent = bench(say("Final answer.", split=2))

    outcome = agent.prompt("question")

    assert outcome.stop_reason == "end_turn"
    assert outcome.text == "Final answer."
    assert agent.roles() == ["user: text", "assistant: text"]
    assert agent.client.text() == ["Final a", "nswer."]
    assert len(agent.of("assistant/message")) == 1
    assert len(agent.model.requests) == 1


def test_block_without_deltas_is_shown_whole(bench: Make) -> None:
    agent = bench(say("At once.", split=0))

    agent.prompt()

    assert agent.client.text() == ["At once."]


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("read-only", ["bash", "read"]),
        ("workspace-write", ["bash", "edit", "read", "write"]),
        ("full-access", ["bash", "edit", "read", "write"]),
    ],
)
@pytest.mark.parametrize("tools", [EDITORS, EDITORS[::-1]], ids=["one way", "the other"])
def test_offered_tools_follow_policy(
    bench: Make, mode: str, names: list[str], tools: list[FakeTool]
) -> None:
    agent = bench(say("ok"), tools=tools, permission_mode=mode)

    agent.prompt()

    assert [tool["name"] for tool in agent.model.requests[0].tools] == names


def test_model_schema_has_no_runtime_metadata(bench: Make) -> None:
    agent = bench(say("ok"), tools=EDITORS)

    agent.prompt()

    assert len(agent.model.requests[0].tools) == len(EDITORS)
    for tool in agent.model.requests[0].tools:
        assert set(tool) == {"name", "description", "schema"}


def test_narrated_call_then_final_history_shape(bench: Make) -> None:
    agent = bench(
        round_(say("Reading…"), call("call-1", "look", {"at": 1})),
        say("It says hello."),
        tools=[FakeTool("look", "hello")],
    )

    outcome = agent.prompt()

    assert outcome.stop_reason == "end_turn"
    assert agent.roles() == [
        "user: text",
        "assistant: text tool-call",
        "user: tool-result",
        "assistant: text",
    ]
    assert agent.model.requests[1].tool_result("call-1")["isError"] is False
    blocks = [block for one in agent.model.requests[1].messages for block in one["content"]]
    assert [block["type"] for block in blocks] == ["text", "text", "tool-call", "tool-result"]
    assert blocks[1]["text"] == "Reading…"
    assert outcome.text == "It says hello."
    assert agent.results() == {"call-1": "hello"}
    surfaces = [event for event in agent.events if "surfaceOp" in event]
    assert [event["type"] for event in surfaces] == [
        "user/message",
        "assistant/message",
        "tool/result",
        "assistant/message",
    ]


def test_frames_of_a_call_go_from_pending_to_completed(bench: Make) -> None:
    agent = bench(
        round_(say("Reading…"), call("call-1", "look")), say("ok"), tools=[FakeTool("look")]
    )

    agent.prompt()

    assert agent.client.kinds() == [
        "agent_message_chunk",
        "1.1.1 pending",
        "1.1.1 in_progress",
        "1.1.1 completed",
        "agent_message_chunk",
    ]


def test_real_read_tool_through_loop(bench: Make) -> None:
    agent = bench(call("c", "read", {"path": "notes.txt"}), say("ok"), tools=[Read()])
    (agent.cwd / "notes.txt").write_text("one\ntwo\n")

    agent.prompt()

    result = agent.result_blocks()[0]
    context = ToolContext(
        cwd=agent.cwd,
        call=CallInfo(lineage="1", turn=1, step=1, k=1, call_id="c"),
        policy=agent.session.settings().policy.paths,
        environment={},
        read_files=set(),
        executor=agent.executor,
    )
    rendered = asyncio.run(Read().run({"path": "notes.txt"}, context))
    assert result["isError"] is False
    assert agent.results() == {"c": rendered.visible}


def test_many_rounds_allowed_by_default(bench: Make) -> None:
    rounds = [call(f"c{n}", "look", {"n": n}) for n in range(20)]
    agent = bench(*rounds, say("done"), tools=[FakeTool("look")], rebuild=False)

    assert agent.prompt().stop_reason == "end_turn"
    assert len(agent.model.requests) == 21


def test_finish_replay_state_goes_back_to_the_provider(bench: Make) -> None:
    state = {"response": "r1", "blocks": ["b1"]}
    text: Json = {"type": "text", "text": "hi"}
    agent = bench(
        raw(
            [
                {"type": "block-start", "index": 0, "blockType": "text"},
                {"type": "block-end", "index": 0, "block": text},
                {"type": "finish", "reason": {"kind": "stop"}, "replayState": state},
            ]
        ),
        say("again"),
    )

    agent.prompt()
    agent.prompt()

    assert agent.model.requests[1].messages[1]["replayState"] == state


def test_header_is_logged_when_it_changes_and_only_then(bench: Make) -> None:
    agent = bench(say("a"), say("b"), say("c"), tools=EDITORS)

    agent.prompt()
    agent.prompt()
    agent.session.mode = "read-only"
    agent.prompt()

    assert [header["reason"] for header in agent.of("request/header")] == ["initial", "change"]
    assert len(agent.of("request/context")) == 1


def test_log_of_a_turn_has_the_order_of_the_contract(bench: Make) -> None:
    agent = bench(call("c", "look"), say("ok"), tools=[FakeTool("look")])

    agent.prompt()

    kinds = [event["type"] for event in agent.events if event["type"] != "assistant/chunk"]
    assert kinds == [
        "turn/start",
        "step/start",
        "user/message",
        "request/header",
        "request/context",
        "llm/call",
        "assistant/message",
        "tool/call",
        "tool/result",
        "step/end",
        "step/start",
        "llm/call",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    calls = [event for event in agent.events if event["type"] == "llm/call"]
    assert [event["data"]["call"] for event in calls] == [1, 2]
    assert all(event["ignorable"] is True for event in calls)
    assert [list(event)[:4] for event in agent.events] == [
        ["type", "seq", "time", "data"] for _ in agent.events
    ]


def test_sources_of_a_message_are_its_chunks_and_of_a_result_its_call(bench: Make) -> None:
    agent = bench(call("c", "look"), say("ok"), tools=[FakeTool("look")])

    agent.prompt()

    by_type = {event["seq"]: event["type"] for event in agent.events}
    for event in agent.events:
        expected = {"assistant/message": "assistant/chunk", "tool/result": "tool/call"}
        for seq in event.get("sourceEventSeqs", []):
            assert by_type[seq] == expected[event["type"]]
