import json
from collections.abc import Mapping
from typing import Any

from loop_bench import FakeTool, Make

from acp_example.tools import ToolContext
from llm_replay.scripted_model import call, round_, say

MESSAGE = "'look' was called more than 3 times with the same outcome"


def test_repeat_guard_fires_on_fourth_and_commits_output(bench: Make) -> None:
    agent = bench(*[call(f"c{n}", "look", {"a": 1}) for n in range(4)], tools=[FakeTool("look")])

    outcome = agent.prompt()

    assert (outcome.code, outcome.message) == ("REPEATED_TOOL_CALL", MESSAGE)
    assert len(agent.results()) == 4
    assert len(agent.model.requests) == 4
    assert agent.of("turn/end")[0]["reason"] == {
        "kind": "error",
        "message": MESSAGE,
        "code": "REPEATED_TOOL_CALL",
    }


def test_repeat_guard_ignores_key_order(bench: Make) -> None:
    texts = ['{"a":1,"b":2}', '{"b":2,"a":1}', '{ "a": 1, "b": 2 }', '{"b": 2, "a": 1}']
    agent = bench(
        *[call(f"c{n}", "look", text) for n, text in enumerate(texts)], tools=[FakeTool("look")]
    )

    assert agent.prompt().code == "REPEATED_TOOL_CALL"


def test_repeat_guard_resets_on_different_result(bench: Make) -> None:
    seen: list[object] = []

    async def count(given: Mapping[str, Any], _context: ToolContext) -> str:
        seen.append(given)
        return str(len(seen))

    agent = bench(
        *[call(f"c{n}", "look") for n in range(6)], say("ok"), tools=[FakeTool("look", count)]
    )

    assert agent.prompt().stop_reason == "end_turn"


def test_repeat_guard_alternating_calls(bench: Make) -> None:
    calls = [call(f"c{n}", "look", {"which": "AB"[n % 2]}) for n in range(7)]
    agent = bench(*calls, tools=[FakeTool("look")])

    assert agent.prompt().code == "REPEATED_TOOL_CALL"
    assert len(agent.results()) == 7


def test_repeat_guard_identical_calls_in_one_batch(bench: Make) -> None:
    tool = FakeTool("look")
    agent = bench(round_(*[call(f"c{n}", "look") for n in range(4)]), tools=[tool])

    assert agent.prompt().code == "REPEATED_TOOL_CALL"
    assert len(tool.started) == 4
    assert len(agent.results()) == 4


def test_repeat_guard_counts_denied_calls(bench: Make) -> None:
    calls = [call(f"c{n}", "run") for n in range(4)]
    agent = bench(
        *calls,
        tools=[FakeTool("run", kind="execute")],
        permission_mode="workspace-write",
    )
    agent.client.queue.extend(["reject_once"] * 4)

    assert agent.prompt().code == "REPEATED_TOOL_CALL"


def test_repeat_guard_counts_calls_whose_arguments_are_no_json(bench: Make) -> None:
    agent = bench(*[call(f"c{n}", "look", "{") for n in range(4)], tools=[FakeTool("look")])

    assert agent.prompt().code == "REPEATED_TOOL_CALL"


def test_repeat_guard_is_reset_by_a_new_prompt(bench: Make) -> None:
    three = [call(f"c{n}", "look") for n in range(3)]
    agent = bench(*three, say("one"), *three, say("two"), tools=[FakeTool("look")])

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.prompt().stop_reason == "end_turn"


def test_repeat_guard_can_be_turned_off(bench: Make) -> None:
    agent = bench(
        *[call(f"c{n}", "look") for n in range(5)],
        say("ok"),
        tools=[FakeTool("look")],
        repeat_limit=None,
    )

    assert agent.prompt().stop_reason == "end_turn"


def test_arguments_of_different_types_are_different_calls(bench: Make) -> None:
    values: list[object] = [1, "1", 1.5, True, None]
    agent = bench(
        *[call(f"c{n}", "look", json.dumps({"a": value})) for n, value in enumerate(values)],
        say("ok"),
        tools=[FakeTool("look")],
    )

    assert agent.prompt().stop_reason == "end_turn"
