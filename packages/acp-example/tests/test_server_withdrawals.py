"""A question that nobody waits for any more is withdrawn from the client."""

import asyncio
from collections.abc import Callable

import pytest
from acp_wire import Wire
from loop_bench import FakeTool, Json, Make

from acp_example.tools import FatalToolError
from llm_replay.scripted_model import call, round_, say

Connect = Callable[..., Wire]


@pytest.fixture
def connect(bench: Make) -> Connect:
    """Connect a client, which answers no question by itself, to an agent that asks."""

    def make(*steps: Json, **facts: Json) -> Wire:
        return Wire(bench(*steps, rebuild=False, permission_mode="workspace-write", **facts))

    return make


def text(words: str) -> list[Json]:
    return [{"type": "text", "text": words}]


def is_question(frame: Json) -> bool:
    return bool(frame.get("method") == "session/request_permission")


def withdrawals(wire: Wire) -> list[Json]:
    return [frame for frame in wire.frames if frame.get("method") == "$/cancel_request"]


def test_question_that_was_not_answered_in_time_is_withdrawn(connect: Connect) -> None:
    tool = FakeTool("run", kind="execute")

    async def work(wire: Wire) -> None:
        session = await wire.new()
        prompt = wire.ask("session/prompt", sessionId=session, prompt=text("hi"))
        question = await wire.until(is_question)
        await wire.agent.clock.advance(5)
        assert (await prompt)["result"]["stopReason"] == "end_turn"

        assert withdrawals(wire) == [
            {
                "jsonrpc": "2.0",
                "method": "$/cancel_request",
                "params": {"requestId": question["id"], "_meta": {"toolCallId": "1.1.1"}},
            }
        ]
        settled = next(f for f in wire.frames if "failed" in str(f))
        assert wire.frames.index(withdrawals(wire)[0]) < wire.frames.index(settled)
        late = {"outcome": {"outcome": "selected", "optionId": "allow-once"}}
        wire.send({"jsonrpc": "2.0", "id": question["id"], "result": late})
        await wire.result("session/prompt", sessionId=session, prompt=text("still there?"))

    connect(call("c", "run"), say("ok"), say("yes"), tools=[tool], permission_timeout_s=5).run(work)

    assert tool.started == []


def test_question_about_a_batch_that_failed_is_withdrawn(connect: Connect) -> None:
    gate = asyncio.Event()

    async def fail(_given: Json, _context: Json) -> str:
        await gate.wait()
        raise FatalToolError("DISK_FULL", "no space")

    async def work(wire: Wire) -> None:
        session = await wire.new()
        prompt = wire.ask("session/prompt", sessionId=session, prompt=text("hi"))
        question = await wire.until(is_question)
        gate.set()

        assert (await prompt)["error"]["data"] == {"code": "DISK_FULL"}
        (withdrawn,) = withdrawals(wire)
        assert withdrawn["params"]["requestId"] == question["id"]

    tools = [FakeTool("run", kind="execute"), FakeTool("boom", fail, kind="read")]
    connect(round_(call("a", "run"), call("b", "boom")), tools=tools).run(work)


def test_client_that_cancels_takes_its_questions_back_by_itself(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        prompt = wire.ask("session/prompt", sessionId=session, prompt=text("hi"))
        await wire.until(is_question)
        wire.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})

        assert (await prompt)["result"]["stopReason"] == "cancelled"
        assert withdrawals(wire) == []

    connect(call("c", "run"), tools=[FakeTool("run", kind="execute")]).run(work)


def test_question_that_was_answered_is_not_withdrawn(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        outcome = {"outcome": "selected", "optionId": "allow-once"}
        wire.answer = lambda _frame: {"result": {"outcome": outcome}}
        session = await wire.new()
        await wire.result("session/prompt", sessionId=session, prompt=text("hi"))
        await wire.agent.clock.advance(5)

        assert withdrawals(wire) == []

    connect(
        call("c", "run"),
        say("ok"),
        tools=[FakeTool("run", kind="execute")],
        permission_timeout_s=5,
    ).run(work)
