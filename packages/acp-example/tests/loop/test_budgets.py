"""How far a turn may go: model calls, tool calls, tokens."""

import pytest
from loop_bench import Bench, FakeTool, Json, Make, window

from acp_example.settings import Limits
from llm_replay.scripted_model import call, round_, say

SPENT: Json = {"inputTokens": 90, "outputTokens": 10}


def test_round_cap_maps_to_max_turn_requests(bench: Make) -> None:
    agent = bench(
        call("a", "look", {"n": 1}),
        call("b", "look", {"n": 2}),
        tools=[FakeTool("look")],
        max_rounds=2,
    )

    assert agent.prompt().stop_reason == "max_turn_requests"
    assert agent.results() == {"a": "done", "b": "done"}
    assert agent.of("turn/end")[0]["reason"] == {"kind": "max-turn-requests"}


def test_cap_of_tool_calls_counts_a_batch_as_a_whole(bench: Make) -> None:
    tool = FakeTool("look")
    agent = bench(
        round_(*[call(name, "look", {"at": name}) for name in "abc"]),
        round_(call("d", "look", {"at": "d"}), call("e", "gone")),
        say("next turn"),
        tools=[tool],
        max_tool_calls=4,
    )

    assert agent.prompt().stop_reason == "max_turn_requests"
    assert list(agent.results()) == ["a", "b", "c", "d", "e"]
    assert len(tool.started) == 4
    assert agent.of("turn/end")[0]["reason"] == {"kind": "max-turn-requests"}
    assert agent.prompt().stop_reason == "end_turn"


def test_cap_of_tokens_maps_to_max_tokens(bench: Make) -> None:
    agent = bench(
        round_(say("first turn"), usage=SPENT),
        round_(call("a", "look", {"n": 1}), usage=SPENT),
        round_(call("b", "look", {"n": 2}), usage=SPENT),
        say("next turn"),
        tools=[FakeTool("look")],
        max_turn_tokens=200,
    )
    agent.prompt()

    assert agent.prompt().stop_reason == "max_tokens"
    assert agent.results() == {"a": "done", "b": "done"}
    assert agent.of("turn/end")[1]["reason"] == {"kind": "max-tokens"}
    assert agent.prompt().stop_reason == "end_turn"


def test_answer_that_uses_up_the_last_of_a_budget_is_an_answer(bench: Make) -> None:
    agent = bench(
        round_(call("a", "look"), usage=SPENT),
        round_(say("done"), usage=SPENT),
        tools=[FakeTool("look")],
        max_rounds=2,
        max_turn_tokens=200,
    )

    assert agent.prompt().stop_reason == "end_turn"


def full(bench: Make, **limits: int) -> Bench:
    agent = bench(
        say("hello"),
        round_(call("c", "look"), usage={"inputTokens": 8000, "outputTokens": 0}),
        tools=[FakeTool("look")],
        **limits,
    )
    window(agent.model, 10_000)
    agent.prompt()
    return agent


def test_turn_that_may_go_no_further_is_not_summarised(bench: Make) -> None:
    agent = full(bench, max_rounds=1)

    assert agent.prompt().stop_reason == "max_turn_requests"
    assert agent.of("compaction/start") == []


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        (Limits(), None),
        (Limits(rounds=3, calls=6, tokens=11), None),
        (Limits(rounds=2), "max_turn_requests"),
        (Limits(calls=5), "max_turn_requests"),
        (Limits(tokens=10), "max_tokens"),
        (Limits(rounds=2, tokens=10), "max_tokens"),
    ],
)
def test_limits_say_which_of_them_is_reached(limits: Limits, stop: str | None) -> None:
    assert limits.reached(rounds=2, calls=5, tokens=10) == stop
