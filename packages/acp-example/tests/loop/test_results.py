import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from loop_bench import FakeTool, Gates, Make, gate, settle

from acp_example.tools import Diff, ToolContext, ToolResult
from llm_replay.scripted_model import call, round_, say


def test_tool_timeout_becomes_result(bench: Make) -> None:
    gates = Gates(timeout_s=30)
    agent = bench(gate("a"), say("went on"), tools=[gates.tool])

    async def work() -> str:
        turn = asyncio.create_task(agent.turn())
        await settle()
        await agent.clock.advance(29.9)
        assert gates.tool.ended == 0
        await agent.clock.advance(0.1)
        return (await turn).text

    assert agent.run(work()) == "went on"
    assert gates.tool.ended == 1
    assert not gates["a"].is_set()
    assert len(agent.model.requests) == 2
    assert agent.results() == {"call-a": "Error [TIMEOUT]: 'gate' took longer than 30 s"}


def test_tool_in_time_is_not_touched_by_its_limit(bench: Make) -> None:
    agent = bench(call("c", "look"), say("ok"), tools=[FakeTool("look", timeout_s=30)])

    agent.prompt()

    assert agent.results() == {"c": "done"}


def test_body_that_fails_while_it_is_timed_out_is_timed_out(bench: Make) -> None:
    async def stubborn(_given: Mapping[str, Any], _context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("clean-up broke") from None
        return ""

    tool = FakeTool("look", stubborn, timeout_s=1)
    agent = bench(call("c", "look"), say("ok"), tools=[tool])

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        await agent.clock.advance(1)
        await turn

    agent.run(work())

    assert agent.results() == {"c": "Error [TIMEOUT]: 'look' took longer than 1 s"}


def test_cancel_during_tool_writes_result_then_cancelled(bench: Make) -> None:
    gates = Gates()
    agent = bench(gate("a"), tools=[gates.tool])

    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        return (await turn).stop_reason

    assert agent.run(work()) == "cancelled"
    text = "Error [ABORTED]: the turn was cancelled while this call ran"
    assert agent.results() == {"call-a": text}
    assert gates.tool.ended == 1
    assert agent.result_blocks()[0]["isError"] is True
    assert agent.of("tool/result")[0]["error"]["code"] == "ABORTED"
    assert agent.of("turn/end")[0]["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_cancelled_body_may_give_back_what_it_has(bench: Make, timeout_s: float | None) -> None:
    async def partial(_given: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ToolResult(text="half of it")
        raise AssertionError

    agent = bench(
        call("c", "slow"), say("next"), tools=[FakeTool("slow", partial, timeout_s=timeout_s)]
    )

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        await turn

    agent.run(work())
    agent.prompt()

    text = "half of it\n\n[the turn was cancelled while this call ran]"
    result = agent.model.requests[1].tool_result("c")
    assert (result["content"][0]["text"], result["isError"]) == (text, True)


def test_call_stopped_before_its_body_began_still_has_a_result(bench: Make) -> None:
    tool = FakeTool("look")
    agent = bench(call("c", "look"), tools=[tool])

    def stop(update: Mapping[str, Any]) -> None:
        if update.get("status") == "in_progress":
            asyncio.get_running_loop().call_soon(agent.session.cancel)

    agent.client.watch = stop

    async def work() -> str | None:
        return (await agent.turn()).stop_reason

    assert agent.run(work()) == "cancelled"
    assert "c" in agent.results()


def test_result_carries_diffs_details_images_and_notice(bench: Make) -> None:
    rich = ToolResult(
        text="changed",
        notice="3 more lines",
        truncated=True,
        diffs=[Diff("/a", "old", "new"), Diff("/b", None, "made")],
        images=[{"type": "image", "mimeType": "image/png", "data": "AAAA"}],
        details={"lines": 2},
    )
    agent = bench(call("c", "edit"), say("ok"), tools=[FakeTool("edit", rich)])

    agent.prompt()

    settled = next(u for u in agent.client.updates if u.get("status") == "completed")
    assert settled["content"] == [
        {"type": "content", "content": {"type": "text", "text": "changed\n\n[3 more lines]"}},
        {"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": "AAAA"}},
        {"type": "diff", "path": "/a", "oldText": "old", "newText": "new"},
        {"type": "diff", "path": "/b", "newText": "made"},
    ]
    assert settled["rawOutput"] == {"lines": 2}
    assert agent.of("tool/result")[0]["meta"] == {"lines": 2}
    assert agent.result_blocks()[0]["content"][1] == {
        "type": "image",
        "attachment": {"mimeType": "image/png", "data": "AAAA"},
    }


def test_plan_of_a_call_names_the_call(bench: Make) -> None:
    entries = [{"content": "first", "priority": "medium", "status": "pending"}]
    tool = FakeTool("todo", ToolResult(text="noted", plan=entries))
    agent = bench(call("c", "todo"), say("ok"), tools=[tool])

    agent.prompt()

    assert agent.client.kinds()[:4] == [
        "1.1.1 pending",
        "1.1.1 in_progress",
        "plan",
        "1.1.1 completed",
    ]
    plan = agent.client.updates[2]
    assert plan["entries"] == entries
    assert plan["_meta"] == {"toolCallId": "1.1.1"}


def test_loaded_session_shows_its_plans_again(bench: Make) -> None:
    entries = [{"content": "first", "priority": "medium", "status": "pending"}]
    tool = FakeTool("todo", ToolResult(text="noted", plan=entries, details={"lines": 2}))
    agent = bench(call("c", "todo"), say("ok"), tools=[tool])
    agent.prompt()
    live = [update for update in agent.client.updates if "toolCallId" in str(update)]

    agent.reload()

    told = [update for update in agent.client.updates if "toolCallId" in str(update)]
    assert told == [update for update in live if update.get("status") != "in_progress"]
    assert [update["sessionUpdate"] for update in told][1] == "plan"


def test_call_that_had_finished_when_the_cancel_came_keeps_its_result(bench: Make) -> None:
    quick, gates = FakeTool("quick", "made it"), Gates()
    agent = bench(round_(call("a", "quick"), gate("b")), tools=[quick, gates.tool])

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        assert quick.ended == 1
        agent.session.cancel()
        await turn

    agent.run(work())

    assert agent.results()["a"] == "made it"
    assert agent.results()["call-b"].startswith("Error [ABORTED]")
