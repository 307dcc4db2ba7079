import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest
from loop_bench import FakeTool, Json, Make, conversation, settle

from acp_example.tools import ToolContext
from acp_example.tools.task import Task
from llm_replay.scripted_model import call, error, hang, round_, say, scripted, think


def task(call_id: str, prompt: str, **more: str) -> Json:
    return call(call_id, "task", {"description": "a task", "prompt": prompt, **more})


def test_spawned_child_answers_its_call(bench: Make) -> None:
    agent = bench(
        task("c", "count the files"),
        say("There are three."),
        children=[[say("three")]],
        tools=[Task()],
    )

    agent.prompt()

    assert agent.results() == {"c": "three"}
    child = agent.log("1/1.1.1")
    assert child.header.raw == {
        "type": "session",
        "version": 1,
        "id": child.header.id,
        "createdAt": 0,
        "cwd": "/project",
        "parentSession": "id-1",
        "origin": "subagent",
        "delegationDepth": 1,
        "lineage": "1/1.1.1",
    }
    assert conversation(child).messages[0]["content"][0]["text"] == "count the files"
    assert agent.of("tool/result")[0]["meta"] == {"subagent": "1/1.1.1"}


def test_client_sees_only_the_tool_calls_of_a_child(bench: Make) -> None:
    agent = bench(
        task("c", "look"),
        say("done"),
        children=[[round_(think("hm"), say("I look"), call("x", "look")), say("seen")]],
        tools=[Task(), FakeTool("look")],
    )

    agent.prompt()

    assert agent.client.kinds() == [
        "1.1.1 pending",
        "1.1.1 in_progress",
        "1/1.1.1:1.1.1 pending",
        "1/1.1.1:1.1.1 in_progress",
        "1/1.1.1:1.1.1 completed",
        "1.1.1 completed",
        "agent_message_chunk",
    ]
    for update in agent.client.updates:
        if update.get("toolCallId", "").startswith("1/"):
            assert update["_meta"] == {"parentToolCallId": "1.1.1"}


def test_permission_request_of_a_child_names_its_parent_call(bench: Make) -> None:
    agent = bench(
        task("c", "run it"),
        say("done"),
        children=[[call("x", "run"), say("ran")]],
        tools=[Task(), FakeTool("run", kind="execute")],
        permission_mode="workspace-write",
    )
    agent.client.answers = {"1/1.1.1:1.1.1": "allow_always"}

    agent.prompt()

    shown = agent.client.asked[0]["toolCall"]
    assert shown["_meta"] == {"parentToolCallId": "1.1.1"}
    assert agent.results() == {"c": "ran"}


def test_forked_child_knows_the_finished_turns(bench: Make) -> None:
    agent = bench(
        say("the answer is 42"),
        round_(say("wait"), task("c", "what was it", mode="fork")),
        say("done"),
        children=[[say("42")]],
        tools=[Task()],
    )
    agent.prompt("what is it")
    seed = list(agent.events)

    agent.prompt("ask a fork")

    child = agent.log("1/2.1.1")
    assert child.header.seed_length == len(seed)
    assert child.events[: len(seed)] == seed
    assert child.events[len(seed)]["type"] == "session/end-seed"
    headers = [event for event in child.events if event["type"] == "request/header"]
    assert [event["data"]["reason"] for event in headers] == ["initial", "resume"]
    calls = [e["data"] for e in child.events[len(seed) :] if e["type"] == "llm/call"]
    assert calls == [{"turn": 2, "step": 1, "call": 1, "purpose": "turn"}]
    texts = [message["content"][0]["text"] for message in conversation(child).messages]
    assert texts == ["what is it", "the answer is 42", "what was it", "42"]


def test_fork_of_a_parent_without_a_finished_turn_has_no_seed(bench: Make) -> None:
    agent = bench(
        task("c", "hello", mode="fork"), say("done"), children=[[say("hi")]], tools=[Task()]
    )

    agent.prompt()

    child = agent.log("1/1.1.1")
    assert "seedLength" not in child.header.raw
    assert child.events[0]["type"] == "turn/start"


def test_parallel_children_start_in_call_order_and_answer_their_own_call(bench: Make) -> None:
    gates: dict[str, asyncio.Event] = {which: asyncio.Event() for which in "abc"}

    async def wait(given: Mapping[str, Any], _context: ToolContext) -> str:
        await gates[given["gate"]].wait()
        return "through"

    agent = bench(
        round_(task("1", "a"), task("2", "b"), task("3", "c")),
        say("done"),
        children=[[call("x", "wait", {"gate": which}), say(f"{which} says so")] for which in "abc"],
        tools=[Task(), FakeTool("wait", wait)],
    )

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        for which in "bca":
            gates[which].set()
            await settle()
        await turn

    agent.run(work())

    assert agent.results() == {"1": "a says so", "2": "b says so", "3": "c says so"}
    asked = [request.lineage for request in agent.model.requests]
    assert asked[:4] == ["1", "1/1.1.1", "1/1.1.2", "1/1.1.3"]
    assert asked[4:7] == ["1/1.1.2", "1/1.1.3", "1/1.1.1"]


def test_child_may_have_a_child_down_to_the_depth_limit(bench: Make) -> None:
    agent = bench(
        task("a", "one"),
        say("done"),
        children=[[task("b", "two"), say("from one")], [say("from two")]],
        tools=[Task()],
        subagent_depth=2,
    )

    agent.prompt()

    assert agent.log("1/1.1.1/1.1.1").header.raw["delegationDepth"] == 2
    offered = {
        request.lineage: [tool["name"] for tool in request.tools]
        for request in agent.model.requests
    }
    assert offered == {"1": ["task"], "1/1.1.1": ["task"], "1/1.1.1/1.1.1": []}
    grandchild = [u for u in agent.client.updates if "1.1.1:1.1.1" in u.get("toolCallId", "")]
    assert grandchild[0]["_meta"] == {"parentToolCallId": "1.1.1"}


def test_depth_of_none_offers_no_delegation(bench: Make) -> None:
    agent = bench(task("a", "one"), say("ok"), tools=[Task()], subagent_depth=0)

    agent.prompt()

    assert agent.model.requests[0].tools == []
    assert agent.results()["a"].startswith("Error [TOOL_NOT_FOUND]: no tool is named 'task'")


def test_failure_of_a_child_is_recoverable(bench: Make) -> None:
    agent = bench(
        task("c", "try"),
        say("it failed"),
        children=[[round_(finish=error("QUOTA", "no money"))]],
        tools=[Task()],
    )

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.results() == {"c": "Error [SUBAGENT_FAILED]: the subagent failed: no money"}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            round_(say("half"), finish="max-tokens"),
            "half\n\n[the subagent stopped early: max_tokens]",
        ),
        (
            round_(finish="refusal"),
            "(the subagent gave no answer)\n\n[the subagent stopped early: refusal]",
        ),
    ],
)
def test_child_that_stops_early_says_so(bench: Make, answer: Json, text: str) -> None:
    agent = bench(task("c", "try"), say("ok"), children=[[answer]], tools=[Task()])

    agent.prompt()

    assert agent.results() == {"c": text}


def test_cancel_reaches_the_children(bench: Make) -> None:
    agent = bench(
        round_(task("1", "a"), task("2", "b")),
        children=[[hang(after=say("so far", ended=False))], [hang()]],
        tools=[Task()],
    )

    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        return (await turn).stop_reason

    assert agent.run(work()) == "cancelled"
    for lineage in ("1/1.1.1", "1/1.1.2"):
        end = agent.log(lineage).events[-1]
        assert end["data"]["reason"] == {"kind": "aborted", "reason": {"kind": "parent"}}
    assert set(agent.results()) == {"1", "2"}


def test_fault_in_a_child_ends_the_whole_turn(bench: Make) -> None:
    model = scripted(round_(task("1", "a"), task("2", "b")), children=[[say("one")]])
    agent = bench(model=model, tools=[Task()])

    outcome = agent.prompt()

    assert outcome.fault is not None
    assert outcome.code == "REPLAY_FAULT"
    assert set(agent.results()) == {"1", "2"}
    assert "Error [ABORTED]: a fault of the recording ended this call" in agent.results().values()


def test_siblings_of_a_fault_are_stopped(bench: Make) -> None:
    async def forever(_given: Mapping[str, Any], _context: ToolContext) -> str:
        await asyncio.Event().wait()
        return ""

    slow = FakeTool("slow", forever)
    agent = bench(model=scripted(round_(call("1", "slow"), task("2", "b"))), tools=[Task(), slow])

    outcome = agent.prompt()

    assert outcome.fault is not None
    assert slow.ended == 1
    assert agent.results()["1"] == "Error [ABORTED]: the turn was cancelled while this call ran"


def test_child_retries_even_what_would_have_been_shown(bench: Make) -> None:
    agent = bench(
        task("c", "try"),
        say("ok"),
        children=[[round_(say("half", ended=False), finish=error("SERVER")), say("whole")]],
        tools=[Task()],
    )
    agent.clock.auto = True

    agent.prompt()

    assert agent.results() == {"c": "whole"}


def test_tool_that_delegates_refuses_at_the_depth_limit(ws: Json) -> None:
    assert ws.error(Task(), description="d", prompt="p") == (
        "Error [DEPTH_LIMIT]: a subagent this deep can't have one of its own"
    )


@pytest.mark.parametrize("seed", range(20))
def test_children_of_any_speed_give_the_same_logs(bench: Make, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance of no consequence

    async def dawdle(_given: Mapping[str, Any], _context: ToolContext) -> str:
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)
        return "rested"

    rest = [call("r", "rest"), call("r", "rest", {"again": True})]
    agent = bench(
        round_(task("1", "a"), task("2", "b"), task("3", "c")),
        say("done"),
        children=[
            [rest[0], say("a is short")],
            [rest[0], task("deep", "d"), rest[1], say("b asked d")],
            [*rest, say("c rested twice")],
            [rest[0], say("d is deep")],
        ],
        tools=[Task(), FakeTool("rest", dawdle)],
        rebuild=False,
    )
    agent.prompt()

    assert agent.results() == {"1": "a is short", "2": "b asked d", "3": "c rested twice"}
    assert conversation(agent.log("1/1.1.2/1.2.1")).messages[-1]["content"] == [
        {"type": "text", "text": "d is deep"}
    ]
    kinds = {
        lineage: [event["type"] for event in agent.log(lineage).events]
        for lineage in ("1", "1/1.1.1", "1/1.1.2", "1/1.1.3", "1/1.1.2/1.2.1")
    }
    assert kinds["1"].count("tool/result") == 3
    assert [kinds[child].count("tool/result") for child in list(kinds)[1:]] == [1, 3, 2, 1]
