from loop_bench import FakeTool, Json, Make, window

from acp_example.usage import Totals
from llm_replay.scripted_model import call, error, round_, say


def use(read: int, wrote: int, **more: int) -> Json:
    return {"inputTokens": read, "outputTokens": wrote, **more}


def test_usage_accumulates_over_rounds_and_turns(bench: Make) -> None:
    agent = bench(
        round_(call("c", "look"), usage=use(10, 1, cacheReadTokens=5)),
        round_(say("ok"), usage=use(20, 2, reasoningTokens=1)),
        round_(say("again"), usage=use(30, 3)),
        tools=[FakeTool("look")],
    )

    agent.prompt()
    agent.prompt()

    totals = agent.session.conversation.totals
    assert totals == Totals(input=60, output=6, cache_read=5, reasoning=1)
    assert agent.session.conversation.context_tokens == 33


def test_usage_accumulates_over_retries(bench: Make) -> None:
    agent = bench(
        round_(finish=error("SERVER"), usage=use(10, 0)), round_(say("ok"), usage=use(10, 1))
    )
    agent.clock.auto = True

    agent.prompt()

    assert agent.session.conversation.totals == Totals(input=20, output=1)


def test_usage_that_is_missing_is_not_zero(bench: Make) -> None:
    agent = bench(say("ok"))

    agent.prompt()

    totals = agent.session.conversation.totals
    assert totals == Totals()
    assert not totals.known
    assert agent.session.conversation.context_tokens is None


def test_usage_of_zero_is_kept_and_one_that_is_missing_takes_nothing_away(bench: Make) -> None:
    agent = bench(
        round_(call("c", "look"), usage=use(0, 0, cacheReadTokens=0)),
        round_(call("d", "look", {"n": 2}), usage=use(7, 2, cacheReadTokens=3)),
        say("no usage with this one"),
        tools=[FakeTool("look")],
    )

    agent.prompt()

    assert agent.session.conversation.totals == Totals(input=7, output=2, cache_read=3)
    assert agent.session.conversation.context_tokens == 12
    usages = [data.get("usage") for data in agent.of("assistant/message")]
    assert usages == [use(0, 0, cacheReadTokens=0), use(7, 2, cacheReadTokens=3), None]


def test_usage_of_zero_is_kept() -> None:
    totals = Totals.of(use(0, 0, cacheReadTokens=0))

    assert totals.known
    assert totals.cache_read == 0
    assert totals.cache_write is None
    assert totals.total == 0


def test_usage_adds_without_changing_what_it_adds() -> None:
    first, later = Totals.of(use(1, 2)), use(3, 4)

    assert first.plus(later).input == 4
    assert first.input == 1
    assert later == use(3, 4)


def test_usage_is_shown_where_the_window_is_known(bench: Make) -> None:
    agent = bench(round_(say("ok"), usage=use(10, 1, cacheReadTokens=4)))
    window(agent.model, 1000)

    agent.prompt()

    assert agent.client.updates[-1] == {"sessionUpdate": "usage_update", "used": 15, "size": 1000}
    assert agent.of("request/context")[0]["contextWindow"] == 1000


def test_usage_is_not_shown_where_the_window_is_unknown(bench: Make) -> None:
    agent = bench(round_(say("ok"), usage=use(10, 1)))

    agent.prompt()

    assert "usage_update" not in agent.client.kinds()
