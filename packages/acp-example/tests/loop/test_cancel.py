import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Json, Make, settle

from acp_example.loop import Turn
from llm_replay.scripted_model import Block, call, error, hang, round_, say, think


def cancelled(agent: Bench, times: int = 1) -> Coroutine[Any, Any, str | None]:
    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        for _ in range(times):
            agent.session.cancel()
        return (await turn).stop_reason

    return work()


def test_cancel_mid_text_keeps_prefix(bench: Make) -> None:
    agent = bench(hang(after=say("half a sen", ended=False)), say("follow-up"))

    assert agent.run(cancelled(agent)) == "cancelled"
    assert agent.history[1]["content"] == [{"type": "text", "text": "half a sen"}]
    assert agent.of("assistant/message")[0]["interrupted"] is True
    assert agent.of("turn/end")[0]["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}
    assert not any(data["chunk"]["type"] == "finish" for data in agent.of("assistant/chunk"))
    assert agent.prompt().stop_reason == "end_turn"
    assert agent.model.requests[1].roles() == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "after",
    [[say(" \n", ended=False)], [], [call("c", "look", "{", ended=False)], [call("c", "look")]],
    ids=["white space", "nothing", "an open call", "a closed call"],
)
def test_cancel_mid_stream_leaves_nothing_blank(bench: Make, after: list[Block]) -> None:
    tool = FakeTool("look")
    agent = bench(hang(after=after), say("follow-up"), tools=[tool])

    assert agent.run(cancelled(agent)) == "cancelled"
    assert agent.roles() == ["user: text"]
    assert agent.of("assistant/message") == []
    assert tool.started == []
    agent.prompt()


def test_cancel_mid_text_drops_half_call(bench: Make) -> None:
    agent = bench(
        hang(after=[think("so"), say("I will look"), call("c", "look", "{", ended=False)]),
        say("follow-up"),
        tools=[FakeTool("look")],
    )

    assert agent.run(cancelled(agent)) == "cancelled"
    assert agent.history[1]["content"] == [
        {"type": "reasoning", "text": "so"},
        {"type": "text", "text": "I will look"},
    ]
    assert agent.of("assistant/message")[0]["interrupted"] is True
    assert agent.of("tool/call") == []
    assert agent.prompt().stop_reason == "end_turn"


def test_cancel_is_idempotent(bench: Make) -> None:
    agent = bench(hang(), say("fine"))

    assert agent.run(cancelled(agent, times=3)) == "cancelled"
    assert len(agent.of("turn/end")) == 1
    agent.prompt()


def test_idle_cancel_does_not_poison_the_next_prompt(bench: Make) -> None:
    agent = bench(say("fine"), say("still fine"))

    agent.session.cancel()
    assert agent.prompt().stop_reason == "end_turn"
    agent.session.cancel()
    assert agent.prompt().stop_reason == "end_turn"


def test_cancel_before_the_first_step_asks_the_model_nothing(bench: Make) -> None:
    agent = bench()
    turn = Turn(agent.session.conversation, agent.session.settings())

    assert turn.cancel() == []
    content = [{"type": "text", "text": "go"}]
    message = {"id": "m", "role": "user", "content": content, "source": {"kind": "user"}}
    effects = turn.begin(message)

    for event in agent.events:
        agent.session.writer.write(event)
    assert [event["type"] for event in agent.events] == ["turn/start", "user/message", "turn/end"]
    assert effects[-1].outcome.stop_reason == "cancelled"  # type: ignore[union-attr] # the last is Done
    assert agent.model.requests == []


def test_cancel_during_back_off_ends_at_once(bench: Make) -> None:
    agent = bench(round_(finish=error("SERVER")))

    assert agent.run(cancelled(agent)) == "cancelled"
    assert agent.clock.now == 0
    assert len(agent.of("llm/retry")) == 1
    assert agent.of("llm/retry-started") == []
    assert agent.roles() == ["user: text"]


def test_cancel_in_a_multi_call_batch_answers_every_call(bench: Make) -> None:
    async def forever(_given: Json, _context: Json) -> str:
        await asyncio.Event().wait()
        return ""

    tools = [FakeTool("slow", forever), FakeTool("alone", mode="exclusive")]
    agent = bench(
        round_(call("a", "slow"), call("b", "slow"), call("c", "alone"), call("d", "slow")),
        say("next"),
        tools=tools,
    )

    agent.run(cancelled(agent))

    assert list(agent.results()) == ["a", "b", "c", "d"]
    assert all(block["isError"] for block in agent.result_blocks())
    assert agent.prompt().stop_reason == "end_turn"


def test_cancel_of_whoever_runs_the_turn_ends_it_in_order(bench: Make) -> None:
    agent = bench(hang(after=say("partial", ended=False)))

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    agent.run(work())

    assert agent.of("turn/end")[0]["reason"] == {"kind": "aborted", "reason": {"kind": "parent"}}
    assert agent.history[1]["content"] == [{"type": "text", "text": "partial"}]


def test_disposing_ends_what_runs_and_says_so(bench: Make) -> None:
    agent = bench(hang())

    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        await agent.sessions.dispose()
        return (await turn).stop_reason

    assert agent.run(work()) == "cancelled"
    reason = {"kind": "aborted", "reason": {"kind": "disposed"}}
    assert agent.of("turn/end")[0]["reason"] == reason
    assert agent.sessions.open == {}
