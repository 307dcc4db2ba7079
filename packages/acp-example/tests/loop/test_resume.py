import asyncio
from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Json, Make, conversation, settle, window

from acp_example.options import set_mode, set_option
from acp_example.session import Conversation, paired
from acp_example.sessions import SessionError
from acp_example.tools import ToolResult
from llm_replay.scripted_model import call, hang, round_, say, think

REPAIRED = (
    "Error [SESSION_RESUME_INTERRUPTED]: the session was interrupted before this call was "
    "known to have finished; it may have run, in part or not at all"
)


def said(text: str) -> dict[str, Any]:
    return {"id": text, "role": "user", "content": [{"type": "text", "text": text}]}


def asked(*ids: str) -> dict[str, Any]:
    calls = [{"type": "tool-call", "id": one, "name": "look", "arguments": "{}"} for one in ids]
    return {"id": "a", "role": "assistant", "content": calls}


def answer(call_id: str, text: str = "seen") -> dict[str, Any]:
    block = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": text}],
        "isError": False,
    }
    return {"id": f"r-{call_id}", "role": "user", "content": [block]}


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


def test_pairing_a_paired_history_changes_nothing() -> None:
    history = [said("go"), asked("a", "b"), answer("a"), answer("b"), said("more")]

    assert paired(history) == history
    assert all(one is other for one, other in zip(paired(history), history, strict=True))


def test_pairing_gives_an_orphan_call_one_result() -> None:
    history = [said("go"), asked("a"), said("more")]

    repaired = paired(history)

    assert [message["role"] for message in repaired] == ["user", "assistant", "user", "user"]
    block = repaired[2]["content"][0]
    assert (block["toolCallId"], block["isError"]) == ("a", True)
    assert block["content"] == [{"type": "text", "text": REPAIRED}]
    assert paired(repaired) == repaired


def test_pairing_repairs_only_what_is_unpaired() -> None:
    repaired = paired([said("go"), asked("a", "b"), answer("b")])

    assert [m["content"][0]["toolCallId"] for m in repaired[2:]] == ["a", "b"]
    assert repaired[3] == answer("b")


def test_pairing_drops_a_result_that_answers_nothing() -> None:
    assert paired([said("go"), answer("ghost")]) == [said("go")]


def test_pairing_lets_the_latest_of_two_results_win() -> None:
    repaired = paired([asked("a"), answer("a", "first"), answer("a", "latest")])

    assert repaired == [asked("a"), answer("a", "latest")]


def test_pairing_knows_ids_that_come_again() -> None:
    history = [asked("call_0"), answer("call_0", "1"), asked("call_0"), answer("call_0", "2")]

    assert paired(history) == history


def test_pairing_drops_blank_messages() -> None:
    blank = {"id": "x", "role": "assistant", "content": []}

    assert paired([said("go"), blank]) == [said("go")]


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
    live = agent.history

    assert conversation(agent.log()).messages == live
    agent.reload()
    assert agent.history == live
    assert "hello" not in str(live)


def test_session_load_tells_what_happened(bench: Make) -> None:
    agent = bench(
        round_(think("hm"), say("I look"), call("c", "look", {"at": 1})),
        say("It is fine."),
        tools=[FakeTool("look", "seen", kind="read", locations=lambda given: [str(given["at"])])],
    )
    agent.prompt("please look")
    live = [u for u in agent.client.updates if u["sessionUpdate"].startswith("tool_call")]

    agent.reload()

    kinds = agent.client.kinds()
    assert kinds == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "1.1.1 pending",
        "1.1.1 completed",
        "agent_message_chunk",
    ]
    told = [u for u in agent.client.updates if u["sessionUpdate"].startswith("tool_call")]
    assert told == [live[0], live[2]]
    assert agent.client.text("user_message_chunk") == ["please look"]


def test_session_load_tells_the_user_words_once_after_a_compaction(bench: Make) -> None:
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

    agent.reload()

    assert agent.client.text("user_message_chunk") == ["first", "second"]


def test_session_load_tells_images_and_unknown_tools(bench: Make) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    tool = FakeTool("look", ToolResult(text="a picture", images=[image]))
    agent = bench(call("c", "look", "{"), call("d", "look"), say("ok"), tools=[tool])
    content: list[Json] = [
        {"type": "text", "text": "see"},
        {"type": "image", "attachment": {"mimeType": "image/png", "data": "BBBB"}},
    ]
    agent.run(agent.session.prompt(content))

    agent.host.composition.tools._tools.clear()  # noqa: SLF001  the tool is gone when it is loaded
    agent.reload()

    assert agent.client.updates[1]["content"] == {**image, "data": "BBBB"}
    first = agent.client.updates[2]
    assert (first["title"], first["kind"], first["rawInput"]) == ("look", "other", "{")
    assert agent.client.updates[5]["content"][1]["content"] == image


def test_session_resumes_in_its_mode_and_with_its_model(bench: Make) -> None:
    agent = bench(say("ok"))
    agent.prompt()
    set_mode(agent.session, "read-only")
    set_option(agent.session, "model", "scripted/scripted")

    agent.reload()

    assert agent.session.mode == "read-only"
    assert (agent.session.provider, agent.session.model) == ("scripted", "scripted")


def test_fold_replaces_a_range_that_is_not_there_by_appending() -> None:
    made = Conversation(now=lambda: 0, new_id=lambda: "id")

    made.record("user/message", said("a"), surfaceOp={"op": "replace", "start": 7, "end": 9})

    assert made.messages == [said("a")]


def test_cursor_that_nobody_gave_out_is_refused(bench: Make) -> None:
    agent = bench()

    with pytest.raises(SessionError) as caught:
        agent.sessions.listed(cwd=None, cursor="nonsense")
    assert str(caught.value) == "'nonsense' is no cursor of an earlier list"
