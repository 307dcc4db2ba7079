import asyncio

import pytest
from loop_bench import Bench, FakeTool, Json, Make, conversation, settle, window
from loop_checks import REPAIRED

from acp_example.options import set_mode, set_option
from acp_example.sessions import SessionError
from llm_replay.scripted_model import call, hang, round_, say, scripted


def crash(agent: Bench, *, after: str) -> None:
    """Cut the log after the last event of a kind, as a killed process leaves it."""
    data = agent.log_bytes()
    lines = data.splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if f'"type":"{after}"'.encode() in line)
    store: Json = agent.host.store
    store.logs["1"][:] = b"".join(lines[: last + 1])


def test_session_that_is_new_begins_with_its_prompt(bench: Make) -> None:
    agent = bench(say("ok"))

    agent.prompt("hello")

    header = agent.log().header
    assert header.raw == {
        "type": "session",
        "version": 1,
        "id": "id-1",
        "createdAt": 0,
        "cwd": "/project",
        "delegationDepth": 0,
        "lineage": "1",
    }
    assert agent.roles()[0] == "user: text"


def test_session_resumes_with_its_history_and_only_appends(bench: Make) -> None:
    agent = bench(
        round_(say("I look"), call("c", "look")), say("ok"), say("again"), tools=[FakeTool("look")]
    )
    agent.prompt("first")
    before, history = agent.log_bytes(), agent.history

    agent.reload()
    assert agent.history == history
    assert agent.log_bytes() == before
    agent.prompt("second")

    assert agent.log_bytes().startswith(before)
    added = agent.events[-len(agent.log_bytes()[len(before) :].splitlines()) :]
    assert added[0]["type"] == "turn/start"
    assert agent.session.header["id"] == "id-1"
    assert agent.model.requests[2].messages[:-1] == history
    assert agent.of("request/header")[-1]["reason"] == "resume"


@pytest.mark.parametrize("times", [1, 3])
def test_session_cut_during_a_call_is_repaired_once(bench: Make, times: int) -> None:
    agent = bench(round_(call("a", "look"), call("b", "look")), say("ok"), tools=[FakeTool("look")])
    agent.prompt("first")
    crash(agent, after="tool/call")

    for _ in range(times):
        agent.reload()

    assert agent.results() == {"a": REPAIRED, "b": REPAIRED}
    tail = [event["type"] for event in agent.events][-5:]
    assert tail == ["tool/call", "tool/result", "tool/result", "step/end", "turn/end"]
    assert agent.of("turn/end") == [{"turn": 1, "reason": {"kind": "interrupted"}}]
    assert agent.of("tool/result")[0]["error"]["code"] == "SESSION_RESUME_INTERRUPTED"
    assert [block["isError"] for block in agent.result_blocks()] == [True, True]


def test_session_cut_during_a_call_is_repaired_on_disk_before_the_next_prompt(bench: Make) -> None:
    model = scripted(
        round_(call("a", "look"), call("b", "look")), say("lost"), say("usable"), extends=False
    )
    agent = bench(model=model, tools=[FakeTool("look")])
    agent.prompt("first")
    crash(agent, after="tool/call")
    cut = agent.log_bytes()

    agent.reload()
    repaired = agent.log_bytes()
    agent.reload()
    assert agent.log_bytes() == repaired
    assert agent.prompt("second").text == "usable"

    assert repaired.startswith(cut)
    assert agent.log_bytes().startswith(repaired)
    request = agent.model.requests[2]
    assert request.roles() == ["user", "assistant", "user", "user", "user"]
    assert [request.tool_result(one)["content"][0]["text"] for one in "ab"] == [REPAIRED, REPAIRED]
    assert request.messages[-1]["content"][0]["text"] == "second"


def test_session_cut_before_its_calls_began_says_that_they_never_did(bench: Make) -> None:
    agent = bench(round_(call("a", "look")), say("ok"), tools=[FakeTool("look")])
    agent.prompt("first")
    crash(agent, after="assistant/message")
    store: Json = agent.host.store
    lines = bytes(store.logs["1"]).splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"assistant/message"' in line)
    store.logs["1"][:] = b"".join(lines[: first + 1])

    agent.reload()

    assert agent.results() == {
        "a": "Error [SESSION_RESUME_INTERRUPTED]: "
        "the session was interrupted before this call started"
    }


def test_session_cut_while_streaming_is_closed(bench: Make) -> None:
    agent = bench(say("never finished"))
    agent.prompt("first")
    crash(agent, after="assistant/chunk")

    agent.reload()

    assert agent.roles() == ["user: text"]
    assert agent.of("step/end") == [{"turn": 1, "step": 1}]


def test_session_cut_before_its_first_step_is_closed(bench: Make) -> None:
    agent = bench(say("ok"))
    agent.prompt("first")
    crash(agent, after="turn/start")

    agent.reload()

    assert [event["type"] for event in agent.events] == ["turn/start", "turn/end"]


def test_session_that_is_unknown_is_named(bench: Make) -> None:
    agent = bench()

    with pytest.raises(SessionError) as caught:
        agent.sessions.load("nobody", agent.directory, lambda _id: agent.client)

    assert str(caught.value) == "there is no session 'nobody'; session/list names them"


def test_session_that_runs_a_prompt_is_not_loaded_again(bench: Make) -> None:
    agent = bench(hang())

    async def work() -> str:
        turn = asyncio.create_task(agent.turn())
        await settle()
        session_id = agent.session.header["id"]
        with pytest.raises(SessionError) as caught:
            agent.sessions.load(session_id, agent.directory, lambda _id: agent.client)
        agent.session.cancel()
        await turn
        return str(caught.value)

    assert agent.run(work()) == "the session 'id-1' is running a prompt"


def test_session_without_a_turn_loads_as_an_empty_one(bench: Make) -> None:
    agent = bench(say("ok"))
    session_id = agent.session.header["id"]

    agent.reload()

    assert agent.history == []
    assert agent.session.header["id"] == session_id
    agent.prompt()
    assert agent.of("request/header")[0]["reason"] == "initial"


def test_session_replays_its_compaction(bench: Make) -> None:
    agent = bench(
        say("hello"),
        round_(call("c", "look"), usage={"inputTokens": 9000, "outputTokens": 0}),
        say("the summary"),
        say("done"),
        tools=[FakeTool("look")],
    )
    window(agent.model, 10_000)
    agent.prompt("first")
    agent.prompt("second")
    live, before = agent.history, agent.log_bytes()

    assert conversation(agent.log()).messages == live
    agent.reload()
    assert agent.history == live
    assert agent.log_bytes() == before
    assert "hello" not in str(live)


def test_session_resumes_in_its_mode_and_with_its_model(bench: Make) -> None:
    agent = bench(say("ok"))
    agent.prompt()
    set_mode(agent.session, "read-only")
    set_option(agent.session, "model", "scripted/scripted")

    agent.reload()

    assert agent.session.mode == "read-only"
    assert (agent.session.provider, agent.session.model) == ("scripted", "scripted")


def test_cursor_that_nobody_gave_out_is_refused(bench: Make) -> None:
    agent = bench()

    with pytest.raises(SessionError) as caught:
        agent.sessions.listed(cwd=None, cursor="nonsense")
    assert str(caught.value) == "'nonsense' is no cursor of an earlier list"
