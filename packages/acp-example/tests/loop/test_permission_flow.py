import asyncio

import pytest
from loop_bench import FakeTool, Make, settle

from acp_example.effects import StartTool
from acp_example.loop import Turn
from acp_example.permissions import Answer
from acp_example.tools import ToolResult
from llm_replay.scripted_model import call, round_, say

ASKING = {"permission_mode": "workspace-write"}


def run_tool(name: str = "run") -> FakeTool:
    return FakeTool(name, kind="execute")


def test_permission_allow_resumes_turn(bench: Make) -> None:
    tool = run_tool()
    agent = bench(call("c", "run", {"x": 1}), say("ok"), tools=[tool], **ASKING)
    agent.client.queue.append("allow_once")

    assert agent.prompt().stop_reason == "end_turn"
    (request,) = agent.client.asked
    assert request["toolCall"]["toolCallId"] == "1.1.1"
    assert request["toolCall"]["rawInput"] == {"x": 1}
    assert tool.started == [{"x": 1}]
    assert [option["kind"] for option in request["options"]] == [
        "allow_once",
        "allow_always",
        "reject_once",
        "reject_always",
    ]
    assert agent.client.statuses("1.1.1") == ["pending", "in_progress", "completed"]
    assert agent.results() == {"c": "done"}
    assert agent.of("approval/asked") == [
        {"id": "1.1.1", "toolName": "run", "callId": "c", "reason": "policy"}
    ]
    assert agent.of("approval/decided") == [{"id": "1.1.1", "outcome": "allow-once"}]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            "reject_once",
            "Error [APPROVAL_DENIED]: the user rejected this call; do not try it again",
        ),
        (
            "reject_always",
            (
                "Error [APPROVAL_DENIED]: the user rejected this call and all like it; "
                "do not try it again"
            ),
        ),
        (
            "cancelled",
            "Error [APPROVAL_DENIED]: the client withdrew the question; the call was not executed",
        ),
    ],
)
def test_permission_reject_is_recoverable(bench: Make, answer: Answer, text: str) -> None:
    tool = run_tool()
    agent = bench(call("c", "run"), say("then not"), tools=[tool], **ASKING)
    agent.client.queue.append(answer)

    assert agent.prompt().stop_reason == "end_turn"
    assert tool.started == []
    assert agent.results() == {"c": text}
    assert agent.result_blocks()[0]["isError"] is True
    assert agent.client.statuses("1.1.1") == ["pending", "failed"]
    assert agent.of("tool/result")[0]["error"] == {"name": "ToolError", "code": "APPROVAL_DENIED"}


def test_permission_answers_route_by_call_id_out_of_order(bench: Make) -> None:
    tool = run_tool()
    agent = bench(
        round_(call("a", "run", {"which": "a"}), call("b", "run", {"which": "b"})),
        say("ok"),
        tools=[tool],
        **ASKING,
    )

    async def work() -> None:
        first, second = asyncio.Event(), asyncio.Event()

        async def deny_when_told() -> Answer:
            await first.wait()
            return "reject_once"

        async def allow_when_told() -> Answer:
            await second.wait()
            return "allow_once"

        agent.client.answers = {"1.1.1": deny_when_told, "1.1.2": allow_when_told}
        turn = asyncio.create_task(agent.turn())
        await settle()
        assert len(agent.client.asked) == 2
        second.set()
        await settle()
        assert tool.started == [{"which": "b"}]
        first.set()
        await turn

    agent.run(work())

    assert tool.started == [{"which": "b"}]
    assert agent.results()["b"] == "done"
    assert agent.results()["a"].startswith("Error [APPROVAL_DENIED]")


def test_unknown_permission_answer_is_ignored(bench: Make) -> None:
    tool = run_tool()
    agent = bench(tools=[tool], **ASKING)
    turn = Turn(agent.session.conversation, agent.session.settings())
    message = {"id": "m", "role": "user", "content": [], "source": {"kind": "user"}}
    turn.begin(message)

    assert turn.permission(1, "allow_once") == []

    for chunk in round_(call("c", "run"))["chunks"]:
        turn.model_chunk(chunk)
    turn.model_ended()

    assert turn.permission(2, "allow_once") == []
    assert turn.permission(0, "allow_once") == []
    started = turn.permission(1, "allow_once")
    assert [type(effect) for effect in started][-1] is StartTool
    assert turn.permission(1, "reject_once") == []

    turn.tool_finished(1, ToolResult(text="done"))
    turn.cancel()
    turn.model_ended()
    for event in agent.session.conversation.events:
        agent.session.writer.write(event)


def test_permission_timeout_is_denial(bench: Make) -> None:
    tool = run_tool()
    agent = bench(call("c", "run"), say("ok"), tools=[tool], permission_timeout_s=120, **ASKING)

    async def never() -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    agent.client.queue.append(never)

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        await agent.clock.advance(119)
        assert agent.of("approval/decided") == []
        await agent.clock.advance(1)
        await turn

    agent.run(work())

    assert tool.started == []
    assert agent.of("approval/decided") == [{"id": "1.1.1", "outcome": "timeout"}]
    assert agent.results() == {
        "c": "Error [APPROVAL_DENIED]: nobody answered in time; the call was not executed"
    }


def test_permission_has_no_timeout_unless_configured(bench: Make) -> None:
    agent = bench(call("c", "run"), say("ok"), tools=[run_tool()], **ASKING)
    agent.client.queue.append("allow_once")

    agent.prompt()

    assert agent.clock.waits == []


@pytest.mark.parametrize("late", [False, True], ids=["nobody answers", "an answer comes later"])
def test_cancel_while_awaiting_permission(bench: Make, *, late: bool) -> None:
    tool = run_tool()
    agent = bench(call("c", "run"), tools=[tool], **ASKING)

    async def work() -> str | None:
        answered = asyncio.Event()

        async def held() -> Answer:
            await answered.wait()
            return "allow_once"

        agent.client.queue.append(held)
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        if late:
            answered.set()
        return (await turn).stop_reason

    assert agent.run(work()) == "cancelled"
    assert tool.started == []
    assert agent.results() == {"c": "Error [ABORTED]: not executed: the turn was cancelled"}


def test_no_client_permission_channel_fails_closed(bench: Make) -> None:
    done, tool = FakeTool("look", kind="read"), run_tool()
    agent = bench(round_(call("a", "look"), call("b", "run")), tools=[done, tool], **ASKING)

    outcome = agent.prompt()

    assert outcome.code == "APPROVAL_UNAVAILABLE"
    text = "Error [APPROVAL_UNAVAILABLE]: the client can't be asked for permission"
    assert outcome.message == text
    assert tool.started == []
    assert set(agent.results()) == {"a", "b"}
    assert agent.results()["b"] == text


def test_always_counts_from_the_next_batch_on(bench: Make) -> None:
    tool = FakeTool("change", kind="other")
    agent = bench(
        round_(call("a", "change", {"n": 1}), call("b", "change", {"n": 2})),
        call("c", "change", {"n": 3}),
        say("ok"),
        tools=[tool],
        **ASKING,
    )
    agent.client.queue.extend(["allow_always", "allow_once"])

    agent.prompt()

    assert len(agent.client.asked) == 2
    assert len(tool.started) == 3


def test_always_for_a_command_covers_that_command_only(bench: Make) -> None:
    agent = bench(
        call("a", "run", {"command": "make"}),
        call("b", "run", {"command": "make"}),
        call("c", "run", {"command": "make clean"}),
        say("ok"),
        tools=[run_tool()],
        **ASKING,
    )
    agent.client.queue.extend(["allow_always", "reject_once"])

    agent.prompt()

    asked = [request["toolCall"]["rawInput"]["command"] for request in agent.client.asked]
    assert asked == ["make", "make clean"]


def test_reject_always_denies_without_asking_again(bench: Make) -> None:
    tool = FakeTool("change", kind="other")
    agent = bench(call("a", "change"), call("b", "change"), say("ok"), tools=[tool], **ASKING)
    agent.client.queue.append("reject_always")

    agent.prompt()

    assert len(agent.client.asked) == 1
    assert tool.started == []
    assert agent.results()["b"] == "Error [APPROVAL_DENIED]: the user always rejects this call"


def test_approvals_of_a_batch_are_logged_with_their_call(bench: Make) -> None:
    agent = bench(
        round_(call("a", "run", {"n": 1}), call("b", "run", {"n": 2})),
        say("ok"),
        tools=[run_tool()],
        **ASKING,
    )
    agent.client.queue.extend(["allow_once", "reject_once"])

    agent.prompt()

    kinds = [
        (event["type"], event["data"].get("id"))
        for event in agent.events
        if event["type"].startswith(("approval", "tool"))
    ]
    assert kinds == [
        ("tool/call", None),
        ("tool/call", None),
        ("approval/asked", "1.1.1"),
        ("approval/decided", "1.1.1"),
        ("tool/result", None),
        ("approval/asked", "1.1.2"),
        ("approval/decided", "1.1.2"),
        ("tool/result", None),
    ]
