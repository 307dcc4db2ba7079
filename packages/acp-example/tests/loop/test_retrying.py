import asyncio

import pytest
from loop_bench import FakeTool, Make, settle

from acp_example.exceptions import ModelError
from llm_replay.exceptions import ReplayExhaustedError, UnclaimedScriptError
from llm_replay.scripted_model import call, error, fail, round_, say, scripted, think
from llm_replay.seam import RetryPolicy


def test_retry_waits_as_its_policy_says_and_logs_both_ends(bench: Make) -> None:
    agent = bench(
        round_(finish=error("SERVER")), round_(finish=error("RATE_LIMIT", "slow down")), say("ok")
    )
    agent.clock.auto = True

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.clock.waits == [0.5, 1.0]
    assert len(agent.model.requests) == 3
    assert agent.client.text() == ["ok"]
    first, second = agent.of("llm/retry")
    assert first == {
        "retryId": "1.1-turn-1",
        "turn": 1,
        "step": 1,
        "provider": "scripted",
        "mode": "normal",
        "policyKey": "scripted",
        "retry": 1,
        "maxRetries": 5,
        "delayMs": 500,
        "failure": {"message": "scripted failure SERVER", "code": "SERVER"},
    }
    assert second["delayMs"] == 1000
    assert agent.of("llm/retry-started") == [
        {"retryId": "1.1-turn-1", "turn": 1, "step": 1, "retry": 1},
        {"retryId": "1.1-turn-2", "turn": 1, "step": 1, "retry": 2},
    ]
    assert [data["call"] for data in agent.of("llm/call")] == [1, 2, 3]
    assert agent.of("step/start") == [{"turn": 1, "step": 1}]


def test_retry_is_logged_before_the_wait(bench: Make) -> None:
    agent = bench(round_(finish=error("SERVER")), say("ok"))

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        assert len(agent.of("llm/retry")) == 1
        assert agent.of("llm/retry-started") == []
        await agent.clock.advance(0.5)
        assert len(agent.of("llm/retry-started")) == 1
        await turn

    agent.run(work())


def test_retry_gives_up_with_the_last_failure(bench: Make) -> None:
    agent = bench(*[round_(finish=error("SERVER", f"down {n}")) for n in range(3)])
    agent.model.retry_policy = RetryPolicy(max_retries=2)
    agent.clock.auto = True

    outcome = agent.prompt()

    assert (outcome.code, outcome.message) == ("SERVER", "down 2")
    assert len(agent.model.requests) == 3
    assert agent.of("turn/end")[0]["reason"] == {
        "kind": "error",
        "message": "down 2",
        "code": "SERVER",
    }


@pytest.mark.parametrize("code", ["QUOTA", "AUTH", "INVALID_REQUEST", "ABORTED", "HTTP_404"])
def test_retry_is_not_for_what_stays_wrong(bench: Make, code: str) -> None:
    agent = bench(round_(finish=error(code)))

    assert agent.prompt().code == code
    assert agent.clock.waits == []


def test_retry_honours_the_delay_a_provider_asks_for(bench: Make) -> None:
    agent = bench(round_(finish=error("RATE_LIMIT", providerRetryAfterMs=7000)), say("ok"))
    agent.clock.auto = True

    agent.prompt()

    assert agent.clock.waits == [7.0]


def test_retry_never_comes_sooner_than_asked(bench: Make) -> None:
    agent = bench(round_(finish=error("RATE_LIMIT", providerRetryAfterMs=60_000)))

    assert agent.prompt().code == "RATE_LIMIT"
    assert agent.clock.waits == []


@pytest.mark.parametrize("shown", [say("half", ended=False), think("hm", ended=False)])
def test_retry_never_follows_a_chunk_that_the_client_saw(bench: Make, shown: object) -> None:
    agent = bench(round_(shown, finish=error("SERVER")))  # type: ignore[arg-type] # a block

    assert agent.prompt().code == "SERVER"
    assert len(agent.model.requests) == 1
    assert agent.clock.waits == []
    assert agent.roles() == ["user: text"]


def test_retry_follows_a_call_that_broke_off_unseen(bench: Make) -> None:
    agent = bench(round_(call("c", "look", "{", ended=False), finish=error("SERVER")), say("ok"))
    agent.clock.auto = True

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.model.requests[1].messages == agent.model.requests[0].messages
    assert agent.roles() == ["user: text", "assistant: text"]


def test_retry_follows_what_an_adapter_raises(bench: Make) -> None:
    agent = bench(fail("TRANSPORT", "reset by peer"), say("ok"))
    agent.clock.auto = True

    assert agent.prompt().stop_reason == "end_turn"
    finish = agent.of("assistant/chunk")[0]["chunk"]
    assert finish["reason"]["failure"] == {"message": "reset by peer", "code": "TRANSPORT"}


def test_instant_policy_changes_no_decision_and_no_logged_delay(bench: Make) -> None:
    agent = bench(round_(finish=error("SERVER")), say("ok"))
    agent.model.retry_policy = RetryPolicy(instant=True, jitter_ratio=0)
    agent.clock.auto = True

    agent.prompt()

    assert agent.clock.waits == [0]
    assert agent.of("llm/retry")[0]["delayMs"] == 500


def test_policy_that_always_retries_knows_no_maximum(bench: Make) -> None:
    agent = bench(*[round_(finish=error("SERVER"))] * 8, say("ok"))
    agent.model.retry_policy = RetryPolicy(mode="always")
    agent.clock.auto = True

    assert agent.prompt().stop_reason == "end_turn"
    assert "maxRetries" not in agent.of("llm/retry")[0]


def test_each_step_has_its_own_attempts(bench: Make) -> None:
    down = round_(finish=error("SERVER"))
    agent = bench(down, call("c", "look"), down, say("ok"), tools=[FakeTool("look")])
    agent.model.retry_policy = RetryPolicy(max_retries=1)
    agent.clock.auto = True

    assert agent.prompt().stop_reason == "end_turn"
    assert [data["retry"] for data in agent.of("llm/retry")] == [1, 1]


def test_after_a_failed_turn_the_session_accepts_the_next_prompt(bench: Make) -> None:
    agent = bench(round_(finish=error("AUTH")), say("back"))

    agent.prompt("first")
    assert agent.prompt("second").stop_reason == "end_turn"
    assert agent.model.requests[1].roles() == ["user", "user"]


def test_fault_of_a_fixture_is_neither_retried_nor_translated(bench: Make) -> None:
    agent = bench(model=scripted(say("only one")))
    agent.prompt()

    outcome = agent.prompt()

    assert isinstance(outcome.fault, ReplayExhaustedError)
    assert outcome.code == "REPLAY_FAULT"
    assert agent.of("llm/retry") == []
    with pytest.raises(ReplayExhaustedError):
        agent.model.assert_consumed()


def test_failure_raised_by_a_handler_in_front_keeps_its_code(bench: Make) -> None:
    agent = bench()

    def broken(_request: object) -> None:
        raise ModelError(code="TEAPOT", message="no coffee", status=418)

    agent.llm.use(broken)

    outcome = agent.prompt()

    assert (outcome.code, outcome.message) == ("TEAPOT", "no coffee")
    assert agent.of("turn/end")[0]["reason"]["status"] == 418


def test_replay_overrun_is_not_swallowed(bench: Make) -> None:
    model = scripted(say("one"))
    agent = bench(model=model)
    agent.prompt()
    agent.prompt()

    with pytest.raises(ReplayExhaustedError):
        model.assert_consumed()


def test_replay_reports_unconsumed(bench: Make) -> None:
    model = scripted(say("one"), say("never asked for"))
    agent = bench(model=model)
    agent.prompt()

    with pytest.raises(UnclaimedScriptError):
        model.assert_consumed()
