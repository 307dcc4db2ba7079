import asyncio

import pytest
from loop_bench import Bench, FakeTool, Json, Make, settle, window

from acp_example import compaction
from llm_replay.scripted_model import call, error, hang, round_, say, scripted
from llm_replay.seam import RetryPolicy

FULL: Json = {"inputTokens": 8000, "outputTokens": 0}


SMALL: Json = {"inputTokens": 10, "outputTokens": 5}


def compacting(bench: Make, *steps: Json, **facts: Json) -> Bench:
    """An agent whose second step of the second turn finds its window full."""
    agent = bench(
        say("hello"),
        round_(call("c", "look"), usage=FULL),
        *steps,
        tools=[FakeTool("look")],
        **facts,
    )
    window(agent.model, 10_000)
    agent.prompt("first words")
    return agent


def test_compaction_request_has_one_message_and_no_tools(bench: Make) -> None:
    agent = compacting(bench, say("the summary"), say("done"))

    agent.prompt("second words")

    request = agent.model.requests[2]
    assert request.purpose == "compaction"
    assert request.roles() == ["user"]
    assert request.tools == []
    assert request.original.tool_choice == "none"
    assert request.system == compaction.SYSTEM
    assert "first words" in request.messages[0]["content"][0]["text"]


def test_compaction_leaves_summary_and_recent_user_messages(bench: Make) -> None:
    agent = compacting(bench, say("the summary"), say("done"))

    agent.prompt("second words")

    texts = [message["content"][0]["text"] for message in agent.model.requests[3].messages]
    assert texts == [
        "Summary of the conversation so far, which is no longer shown:\n\nthe summary",
        "first words",
        "second words",
    ]
    assert agent.of("compaction/start") == [{"turn": 2, "reason": "threshold", "tokens": 8000}]
    assert agent.of("compaction/end") == [{"turn": 2, "kept": 2, "removed": 3}]


def test_compaction_happens_between_steps_and_the_loop_goes_on(bench: Make) -> None:
    agent = compacting(bench, round_(say("the summary"), usage=SMALL), say("done"))

    assert agent.prompt("second words").text == "done"
    kinds = [event["type"] for event in agent.events]
    start = kinds.index("compaction/start")
    assert kinds[start - 1] == "step/end"
    assert kinds[start : start + 8] == [
        "compaction/start",
        "llm/call",
        "compaction/summary",
        "user/message",
        "user/message",
        "user/message",
        "compaction/end",
        "step/start",
    ]
    assert agent.of("compaction/summary") == [
        {
            "turn": 2,
            "summary": "the summary",
            "llmStreamCall": True,
            "rawOutput": [{"type": "text", "text": "the summary"}],
            "usage": SMALL,
        }
    ]
    assert [data["purpose"] for data in agent.of("llm/call")] == [
        "turn",
        "turn",
        "compaction",
        "turn",
    ]


def test_compaction_leaves_no_call_and_no_result_behind(bench: Make) -> None:
    agent = compacting(bench, say("the summary"), say("done"))

    agent.prompt()

    kinds = {block["type"] for message in agent.history for block in message["content"]}
    assert kinds == {"text"}


def test_compaction_shows_the_client_nothing(bench: Make) -> None:
    agent = compacting(bench, say("the summary"), say("done"))

    agent.prompt()

    assert "the summary" not in agent.client.text()


def test_compaction_counts_the_summary_in_the_usage(bench: Make) -> None:
    agent = compacting(bench, round_(say("the summary"), usage=SMALL), say("done"))

    agent.prompt()

    totals = agent.session.conversation.totals
    assert (totals.input, totals.output) == (8010, 5)
    assert agent.session.conversation.context_tokens is None


def test_compaction_keeps_what_an_earlier_one_kept(bench: Make) -> None:
    agent = compacting(
        bench,
        say("summary one"),
        round_(call("d", "look"), usage=FULL),
        say("summary two"),
        say("done"),
    )

    agent.prompt("second words")

    texts = [message["content"][0]["text"] for message in agent.model.requests[-1].messages]
    assert texts[0].endswith("summary two")
    assert texts[1:] == ["first words", "second words"]


@pytest.mark.parametrize("blank", [round_(say(" \n")), round_(finish="stop")])
def test_compaction_refuses_a_blank_summary(bench: Make, blank: Json) -> None:
    agent = compacting(bench, blank, say("done"))

    assert agent.prompt().text == "done"
    error_ = {"message": "the summary is blank", "code": "EMPTY_SUMMARY"}
    assert agent.of("compaction/end") == [{"turn": 2, "error": error_}]
    assert agent.of("compaction/summary") == []
    assert len(agent.history) == 6


def test_compaction_that_fails_lets_the_turn_go_on_without(bench: Make) -> None:
    agent = compacting(
        bench,
        round_(finish=error("QUOTA", "no")),
        round_(call("d", "look"), usage=FULL),
        say("done"),
    )

    assert agent.prompt().text == "done"
    assert len(agent.of("compaction/start")) == 1


def test_compaction_is_retried_as_any_other_call(bench: Make) -> None:
    agent = compacting(bench, round_(finish=error("SERVER")), say("the summary"), say("done"))
    agent.model.retry_policy = RetryPolicy(instant=True)
    agent.clock.auto = True

    assert agent.prompt().text == "done"
    assert agent.of("llm/retry")[0]["retryId"] == "2.1-compaction-1"
    assert len(agent.of("compaction/summary")) == 1


@pytest.mark.parametrize("while_waiting", [False, True], ids=["streaming", "backing off"])
def test_compaction_that_is_cancelled_says_so(bench: Make, *, while_waiting: bool) -> None:
    last = round_(finish=error("SERVER")) if while_waiting else hang(after=say("half", ended=False))
    agent = compacting(bench, last)

    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        return (await turn).stop_reason

    assert agent.run(work()) == "cancelled"
    error_ = {"message": "the turn was cancelled", "code": "ABORTED"}
    assert agent.of("compaction/end") == [{"turn": 2, "error": error_}]
    assert len(agent.of("assistant/message")) == 2


def test_compaction_before_the_first_step_keeps_the_prompt_when_cancelled(bench: Make) -> None:
    agent = bench(
        round_(call("c", "look"), usage=SMALL),
        round_(say("long"), usage=FULL),
        hang(),
        tools=[FakeTool("look")],
    )
    window(agent.model, 10_000)
    agent.prompt("first")

    async def work() -> None:
        turn = asyncio.create_task(agent.turn("second"))
        await settle()
        agent.session.cancel()
        await turn

    agent.run(work())

    assert agent.history[-1]["content"][0]["text"] == "second"


def test_compaction_that_meets_a_fault_ends_the_turn(bench: Make) -> None:
    agent = bench(
        model=scripted(say("hello"), round_(call("c", "look"), usage=FULL)),
        tools=[FakeTool("look")],
    )
    window(agent.model, 10_000)
    agent.prompt()

    outcome = agent.prompt()

    assert outcome.fault is not None
    assert agent.of("compaction/end")[0]["error"]["code"] == "REPLAY_FAULT"
    assert agent.of("turn/end")[1]["reason"]["code"] == "REPLAY_FAULT"
