"""A turn by itself: told things that come late, or that nobody waits for."""

from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Json, Make

from acp_example.effects import Done, StopModel
from acp_example.loop import Turn
from acp_example.playback import Playback
from acp_example.tools import ToolResult
from llm_replay.exceptions import ReplayError
from llm_replay.scripted_model import call, round_, say

MESSAGE = {
    "id": "m",
    "role": "user",
    "content": [{"type": "text", "text": "go"}],
    "source": {"kind": "user"},
}


def begun(agent: Bench) -> Turn:
    """Begin a turn of the agent's session by hand; its log is not written."""
    agent.checked = False
    turn = Turn(agent.session.conversation, agent.session.settings())
    turn.begin(MESSAGE)
    return turn


def streamed(turn: Turn, entry: Json) -> list[Any]:
    """Stream an answer to a turn."""
    for chunk in entry["chunks"]:
        turn.model_chunk(chunk)
    return turn.model_ended()


def test_chunk_that_comes_after_a_cancel_is_dropped(bench: Make) -> None:
    turn = begun(bench())

    assert turn.cancel() == [StopModel()]
    assert turn.model_chunk({"type": "block-start", "index": 0, "blockType": "text"}) == []
    assert isinstance(turn.model_ended()[-1], Done)


def test_chunk_that_comes_after_a_broken_one_is_dropped(bench: Make) -> None:
    turn = begun(bench())

    assert turn.model_chunk({"type": "odd"})[-1] == StopModel()
    assert turn.model_chunk({"type": "odd"}) == []


def test_end_of_a_stream_that_is_over_says_nothing(bench: Make) -> None:
    turn = begun(bench())
    streamed(turn, round_(say("ok")))

    assert turn.model_ended() == []
    assert turn.cancel() == []


def test_results_and_faults_that_nobody_waits_for_say_nothing(bench: Make) -> None:
    turn = begun(bench())
    result = ToolResult(text="late")

    assert turn.tool_finished(1, result) == []
    assert turn.tool_faulted(1, result, ReplayError("late")) == []


def test_fault_beats_a_cancel(bench: Make) -> None:
    agent = bench()
    turn = begun(agent)
    turn.cancel()

    done = turn.model_ended(ReplayError("nothing left"))[-1]

    assert isinstance(done, Done)
    assert done.outcome.fault is not None


def test_cancel_of_a_batch_that_settles_at_once_ends_the_turn(bench: Make) -> None:
    agent = bench(tools=[FakeTool("run", kind="execute")], permission_mode="workspace-write")
    turn = begun(agent)
    streamed(turn, round_(call("c", "run")))

    done = turn.cancel()[-1]

    assert isinstance(done, Done)
    assert done.outcome.stop_reason == "cancelled"


def test_result_of_a_call_that_no_answer_asked_for_is_not_told() -> None:
    playback = Playback(tool=lambda _name: None, locate=str)
    block = {"type": "tool-result", "toolCallId": "ghost", "content": [], "isError": False}
    data = {"turn": 1, "step": 1, "message": {"content": [block]}}

    assert list(playback.updates([{"type": "tool/result", "data": data}])) == []


def test_idle_session_is_waited_for_no_time(bench: Make) -> None:
    agent = bench()

    agent.run(agent.session.idle())


def test_client_that_breaks_when_it_is_asked_can_not_be_asked(bench: Make) -> None:
    agent = bench(
        call("c", "run"),
        tools=[FakeTool("run", kind="execute")],
        permission_mode="workspace-write",
    )

    async def broken() -> Json:
        raise KeyError("oops")

    agent.client.queue.append(broken)

    assert agent.prompt().code == "APPROVAL_UNAVAILABLE"


def test_error_of_the_loop_itself_reaches_whoever_awaits_the_turn(bench: Make) -> None:
    agent = bench(call("c", "look"), tools=[FakeTool("look", title=_broken_title)])
    agent.checked = False

    with pytest.raises(ZeroDivisionError):
        agent.prompt()

    assert agent.session.broken


def _broken_title(given: Json) -> str:
    return str(1 / len(given))
