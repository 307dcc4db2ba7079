import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
from loop_bench import FakeTool, Gates, Json, Make, gate, settle

from acp_example.runner import GRACE_S
from acp_example.tools import ToolContext
from llm_replay.scripted_model import call, say

GATE: dict[str, asyncio.Event] = {}


async def stubborn(_given: Mapping[str, Any], _context: ToolContext) -> str:
    """Do not end when cancelled, not before the gate is opened."""
    while not GATE["open"].is_set():
        try:
            await GATE["open"].wait()
        except asyncio.CancelledError:
            continue
    return "at last"


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_body_that_does_not_stop_is_given_up_after_its_grace(
    bench: Make, timeout_s: float | None
) -> None:
    agent = bench(
        call("c", "slow"), say("next"), tools=[FakeTool("slow", stubborn, timeout_s=timeout_s)]
    )

    async def work() -> str | None:
        GATE["open"] = asyncio.Event()
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        await settle()
        await agent.clock.advance(GRACE_S - 0.1)
        assert not turn.done()
        await agent.clock.advance(0.1)
        outcome = await turn
        GATE["open"].set()
        await settle()
        return outcome.stop_reason

    assert agent.run(work()) == "cancelled"
    text = "Error [ABORTED]: the turn was cancelled while this call ran"
    assert agent.results() == {"c": text}
    agent.prompt()


def test_body_that_does_not_stop_in_time_is_given_up_too(bench: Make) -> None:
    agent = bench(call("c", "slow"), say("next"), tools=[FakeTool("slow", stubborn, timeout_s=1)])

    async def work() -> None:
        GATE["open"] = asyncio.Event()
        turn = asyncio.create_task(agent.turn())
        await settle()
        await agent.clock.advance(1)
        await agent.clock.advance(GRACE_S)
        await turn
        GATE["open"].set()
        await settle()

    agent.run(work())

    assert agent.results() == {"c": "Error [TIMEOUT]: 'slow' took longer than 1 s"}


def test_late_end_of_what_was_given_up_does_not_settle_the_next_prompt(bench: Make) -> None:
    gates = Gates("later")
    agent = bench(
        call("c", "slow"),
        gate("a", "later"),
        say("next"),
        tools=[FakeTool("slow", stubborn), gates.tool],
    )

    async def work() -> str:
        GATE["open"] = asyncio.Event()
        first = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        await settle()
        await agent.clock.advance(GRACE_S)
        assert (await first).stop_reason == "cancelled"
        second = asyncio.create_task(agent.turn())
        await settle()
        GATE["open"].set()
        await settle()
        assert not second.done()
        gates["a"].set()
        return (await second).text

    assert agent.run(work()) == "next"
    assert agent.results()["call-a"] == "through a"
    assert agent.results()["c"] == "Error [ABORTED]: the turn was cancelled while this call ran"
    assert len(agent.of("tool/result")) == 2


def test_stream_that_does_not_close_is_given_up_after_its_grace(bench: Make) -> None:
    agent = bench()
    gate = asyncio.Event()

    async def endless(_request: object) -> AsyncGenerator[Json, None]:
        try:
            await asyncio.Event().wait()
            yield {}
        finally:
            await gate.wait()

    agent.llm.use(endless)

    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        await settle()
        await agent.clock.advance(GRACE_S)
        outcome = await turn
        gate.set()
        await settle()
        return outcome.stop_reason

    assert agent.run(work()) == "cancelled"


def test_grace_that_is_not_needed_delays_nothing(bench: Make) -> None:
    async def patient(_given: Mapping[str, Any], _context: ToolContext) -> str:
        await asyncio.Event().wait()
        return ""

    agent = bench(call("c", "slow"), tools=[FakeTool("slow", patient)])

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        await turn

    agent.run(work())

    assert agent.clock.now == 0
