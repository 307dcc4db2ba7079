import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Gates, Json, Make, gate, settle

from acp_example.tools import FatalToolError, ToolContext, ToolError
from llm_replay.scripted_model import call, round_, say, scripted


def test_parallel_batch_results_in_call_order(bench: Make) -> None:
    gates = Gates()
    agent = bench(round_(gate("a"), gate("b"), gate("c")), say("ok"), tools=[gates.tool])

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        assert gates.started == ["a", "b", "c"]
        for which in "cba":
            gates[which].set()
            await settle()
        await turn

    agent.run(work())

    assert list(agent.results()) == ["call-a", "call-b", "call-c"]
    assert agent.client.kinds()[-4:-1] == ["1.1.3 completed", "1.1.2 completed", "1.1.1 completed"]
    assert agent.client.kinds()[:6] == [
        "1.1.1 pending",
        "1.1.2 pending",
        "1.1.3 pending",
        "1.1.1 in_progress",
        "1.1.2 in_progress",
        "1.1.3 in_progress",
    ]


def test_parallel_batch_partial_failure(bench: Make) -> None:
    tools = [
        FakeTool("good", "fine"),
        FakeTool("bad", ToolError("NO_LUCK", "not today")),
        FakeTool("broken", RuntimeError("oops")),
    ]
    agent = bench(
        round_(call("1", "bad"), call("2", "good"), call("3", "broken"), call("4", "good")),
        say("ok"),
        tools=tools,
    )

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.results() == {
        "1": "Error [NO_LUCK]: not today",
        "2": "fine",
        "3": "Error [EXECUTION_ERROR]: 'broken' failed: RuntimeError: oops",
        "4": "fine",
    }


def test_parallel_batch_exclusive_call_is_barrier(bench: Make) -> None:
    gates, alone = Gates(), Gates("alone", mode="exclusive")
    agent = bench(
        round_(gate("a"), gate("b"), gate("c", "alone"), gate("d"), gate("e", "alone")),
        say("ok"),
        tools=[gates.tool, alone.tool],
    )

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        assert (gates.started, alone.started) == (["a", "b"], [])
        gates["b"].set()
        await settle()
        assert alone.started == []
        gates["a"].set()
        await settle()
        assert (gates.started, alone.started) == (["a", "b"], ["c"])
        alone["c"].set()
        await settle()
        assert (gates.started, alone.started) == (["a", "b", "d"], ["c"])
        gates["d"].set()
        await settle()
        alone["e"].set()
        await turn

    agent.run(work())

    assert list(agent.results()) == ["call-a", "call-b", "call-c", "call-d", "call-e"]


def test_parallel_batch_honours_its_cap(bench: Make) -> None:
    gates = Gates()
    agent = bench(
        round_(gate("a"), gate("b"), gate("c")), say("ok"), tools=[gates.tool], parallel_calls=2
    )

    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        assert gates.started == ["a", "b"]
        gates["b"].set()
        await settle()
        assert gates.started == ["a", "b", "c"]
        gates["a"].set()
        gates["c"].set()
        await turn

    agent.run(work())


def all_paired(agent: Bench) -> None:
    """Check that history and log hold a result for every call, and no result without one."""
    calls = [data["callId"] for data in agent.of("tool/call")]
    results = [data["message"]["source"]["callId"] for data in agent.of("tool/result")]
    assert calls == results
    assert list(agent.results()) == calls


def fatal(agent: Bench, gates: Gates) -> Json:
    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        gates["a"].set()
        outcome = await turn
        assert (outcome.code, outcome.message) == ("DISK_FULL", "Error [DISK_FULL]: no space")

    return work()


def fail_closed(agent: Bench, gates: Gates) -> Json:
    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        gates["a"].set()
        assert (await turn).code == "APPROVAL_UNAVAILABLE"

    return work()


def cancel_between(agent: Bench, gates: Gates) -> Json:
    async def work() -> None:
        def stop(update: Mapping[str, Any]) -> None:
            if update.get("status") == "completed":
                asyncio.get_running_loop().call_soon(agent.session.cancel)

        agent.client.watch = stop
        turn = asyncio.create_task(agent.turn())
        await settle()
        gates["a"].set()
        assert (await turn).stop_reason == "cancelled"

    return work()


def cancel_during(agent: Bench, gates: Gates) -> Json:
    async def work() -> None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        agent.session.cancel()
        assert (await turn).stop_reason == "cancelled"
        assert not gates["a"].is_set()

    return work()


LATE = "not executed: another call of this step failed"
CASES: dict[str, Any] = {
    "fatal": (fatal, "boom", "through a", f"Error [ABORTED]: {LATE}"),
    "fail-closed": (fail_closed, "ask", "through a", f"Error [ABORTED]: {LATE}"),
    "cancel-between": (
        cancel_between,
        "alone",
        "through a",
        "Error [ABORTED]: not executed: the turn was cancelled",
    ),
    "cancel-during": (
        cancel_during,
        "alone",
        "Error [ABORTED]: the turn was cancelled while this call ran",
        "Error [ABORTED]: not executed: the turn was cancelled",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_orphan_calls_after(bench: Make, case: str) -> None:
    work, second, first_text, third_text = CASES[case]
    gates = Gates(kind="read")
    tools = [
        gates.tool,
        FakeTool("boom", FatalToolError("DISK_FULL", "no space"), kind="read"),
        FakeTool("ask", kind="execute"),
        FakeTool("alone", mode="exclusive", kind="read"),
    ]
    agent = bench(
        round_(gate("a"), call("second", second), call("third", "alone")),
        say("usable"),
        tools=tools,
        permission_mode="workspace-write",
    )

    agent.run(work(agent, gates))

    all_paired(agent)
    for tool in tools[2:]:
        assert tool.started == []
    assert agent.results()["call-a"] == first_text
    assert agent.results()["third"] == third_text
    assert gates.tool.ended == len(gates.tool.started) == 1
    agent.client.watch = lambda _update: None
    assert agent.prompt().stop_reason == "end_turn"


def test_no_orphan_calls_after_guard(bench: Make) -> None:
    agent = bench(round_(*[call(f"c{n}", "look") for n in range(5)]), tools=[FakeTool("look")])

    assert agent.prompt().code == "REPEATED_TOOL_CALL"
    all_paired(agent)


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_no_orphan_calls_after_crash(bench: Make, finished: int) -> None:
    calls = [call(name, "look", {"at": name}) for name in ("a", "b", "c")]
    # What is cut off was in a request, so the one after the crash does not extend it.
    model = scripted(round_(*calls), say("lost"), say("usable"), extends=False)
    agent = bench(model=model, tools=[FakeTool("look", "seen")])
    agent.prompt()
    lines = agent.log_bytes().splitlines(keepends=True)
    results = [n for n, line in enumerate(lines) if b'"type":"tool/result"' in line]
    cut = bytearray(b"".join(lines[: results[finished]]))
    agent.host.store.logs["1"][:] = cut  # type: ignore[attr-defined] # it is in memory

    agent.reload()

    assert agent.log_bytes().startswith(cut)
    all_paired(agent)
    texts = list(agent.results().values())
    assert texts[:finished] == ["seen"] * finished
    assert all("[SESSION_RESUME_INTERRUPTED]" in text for text in texts[finished:])
    assert agent.prompt("go on").text == "usable"
    assert agent.model.requests[2].roles()[:5] == ["user", "assistant", "user", "user", "user"]


def test_first_fatal_call_in_call_order_is_the_one_that_is_told(bench: Make) -> None:
    gates = Gates()

    async def fail_at(given: Mapping[str, Any], _context: ToolContext) -> str:
        await gates[given["gate"]].wait()
        raise FatalToolError(given["gate"].upper(), "broke")

    agent = bench(round_(gate("a", "boom"), gate("b", "boom")), tools=[FakeTool("boom", fail_at)])

    async def work() -> str | None:
        turn = asyncio.create_task(agent.turn())
        await settle()
        gates["b"].set()
        await settle()
        gates["a"].set()
        return (await turn).code

    assert agent.run(work()) == "A"


def test_duplicate_call_ids_are_refused_before_any_body_runs(bench: Make) -> None:
    tool = FakeTool("look")
    agent = bench(round_(call("same", "look"), call("same", "look")), say("usable"), tools=[tool])

    assert agent.prompt().code == "STREAM_DUPLICATE_CALL_ID"
    assert tool.started == []
    assert agent.prompt().stop_reason == "end_turn"


def test_unknown_tool_is_recoverable_and_named(bench: Make) -> None:
    known = FakeTool("look", "seen")
    agent = bench(
        round_(call("a", "lok"), call("b", "look")),
        say("ok"),
        tools=[known, FakeTool("write", path_policy="write", kind="edit")],
        permission_mode="full-access",
    )

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.results() == {
        "a": "Error [TOOL_NOT_FOUND]: no tool is named 'lok'; there is 'look', 'write'",
        "b": "seen",
    }
    announced = next(u for u in agent.client.updates if u.get("toolCallId") == "1.1.1")
    assert (announced["title"], announced["kind"]) == ("lok", "other")


def test_unknown_tool_where_there_is_none(bench: Make) -> None:
    agent = bench(call("a", "look"), say("ok"))

    agent.prompt()

    assert agent.results() == {
        "a": "Error [TOOL_NOT_FOUND]: no tool is named 'look'; there is none"
    }
