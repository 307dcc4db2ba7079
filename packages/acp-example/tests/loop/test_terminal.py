import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Json, Make, settle

from acp_example.effects import Outcome
from llm_replay.scripted_model import call, error, hang, round_, say, scripted


def plain(agent: Bench) -> Outcome:
    return agent.prompt()


def cancelling(agent: Bench) -> Outcome:
    async def work() -> Outcome:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        return await turn

    return agent.run(work())


CASES: dict[str, tuple[list[Any], Callable[[Bench], Outcome], str]] = {
    "success": ([say("ok")], plain, "completed"),
    "error": ([round_(finish=error("CONNECT", "refused"))], plain, "error"),
    "cancel": ([hang()], cancelling, "aborted"),
    "guard": ([call(f"c{n}", "look") for n in range(4)], plain, "error"),
    "protocol": ([round_(say("x"), finish=None)], plain, "error"),
    "overrun": ([], plain, "error"),
    "max-tokens": ([round_(say("x"), finish="max-tokens")], plain, "max-tokens"),
    "refusal": ([round_(say("x"), finish="refusal")], plain, "refusal"),
}


@pytest.mark.parametrize("case", CASES)
def test_exactly_one_terminal_event(bench: Make, case: str) -> None:
    steps, run, kind = CASES[case]
    agent = bench(model=scripted(*steps), tools=[FakeTool("look")])

    outcome = run(agent)

    assert (outcome.stop_reason is None) != (outcome.code is None)
    assert [event["type"] for event in agent.events].count("turn/end") == 1
    assert agent.events[0]["type"] == "turn/start"
    assert agent.events[-1]["type"] == "turn/end"
    assert agent.events[-1]["data"]["reason"]["kind"] == kind


def test_failed_turn_has_an_error_text(bench: Make) -> None:
    agent = bench(round_(finish=error("CONNECT", "connection refused")))

    assert agent.prompt().message == "connection refused"


def test_log_that_cannot_be_written_ends_the_turn_loudly(bench: Make) -> None:
    agent = bench(model=scripted(say("ok")), checked=False)
    written: list[object] = []
    write = agent.session.writer.write

    def full(event: Json) -> None:
        written.append(event)
        if len(written) > 4:
            raise OSError(28, "No space left on device")
        write(event)

    agent.session.writer.write = full  # type: ignore[method-assign] # the disk fills up

    with pytest.raises(OSError, match="No space left"):
        agent.prompt()

    assert not agent.session.busy
