from typing import Any

import pytest
from loop_bench import FakeTool, Make

from acp_example.exceptions import ToolError
from acp_example.tools.arguments import parse
from llm_replay.scripted_model import call, round_, say

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "items": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}

BAD: dict[str, tuple[str, str]] = {
    "not-json": (
        "path=a",
        "the arguments are not JSON (Expecting value: line 1 column 1 (char 0)): 'path=a'",
    ),
    "truncated": (
        '{"path": "a',
        (
            "the arguments are not JSON "
            '(Unterminated string starting at: line 1 column 10 (char 9)): \'{"path": "a\''
        ),
    ),
    "wrong-type": ('{"path": 7}', "arguments.path must be a string, not 7"),
    "extra": (
        '{"path": "a", "pth": 1}',
        (
            "arguments has an unknown key 'pth' "
            "(known: 'path', 'limit', 'mode', 'ratio', 'deep', 'items')"
        ),
    ),
    "array": ('["a"]', "the arguments must be a JSON object, not '[\"a\"]'"),
    "missing": ("", "arguments lacks 'path'"),
    "null for a needed one": ('{"path": null}', "arguments lacks 'path'"),
    "empty text": ('{"path": ""}', "arguments.path must not be empty"),
    "too small": ('{"path": "a", "limit": 0}', "arguments.limit must be at least 1, not 0"),
    "too large": ('{"path": "a", "limit": 10}', "arguments.limit must be at most 9, not 10"),
    "a boolean is no number": (
        '{"path": "a", "limit": true}',
        "arguments.limit must be an integer, not true",
    ),
    "none of the choices": (
        '{"path": "a", "mode": "c"}',
        "arguments.mode must be one of 'a', 'b', not 'c'",
    ),
    "no items": ('{"path": "a", "items": []}', "arguments.items must have at least 1 items"),
    "an item": (
        '{"path": "a", "items": [{"name": "x"}, {}]}',
        "arguments.items[1] lacks 'name'",
    ),
    "two problems": (
        '{"limit": 0}',
        "arguments lacks 'path'; arguments.limit must be at least 1, not 0",
    ),
    "a long choice": (
        f'{{"path": "a", "mode": "{"c" * 300}"}}',
        f"arguments.mode must be one of 'a', 'b', not '{'c' * 200}' and 100 more",
    ),
    "a long key": (
        f'{{"path": "a", "{"k" * 300}": 1}}',
        (
            f"arguments has an unknown key '{'k' * 200}' and 100 more "
            "(known: 'path', 'limit', 'mode', 'ratio', 'deep', 'items')"
        ),
    ),
    "a large number": (
        f'{{"path": "a", "limit": {"9" * 300}}}',
        f"arguments.limit must be at most 9, not {'9' * 200} and 100 more",
    ),
    "a long value": (
        f'{{"path": [{"1" * 300}]}}',
        f"arguments.path must be a string, not [{'1' * 199} and 102 more",
    ),
    "many problems": (
        f'{{"path": "a", "items": [{", ".join(["1"] * 12)}]}}',
        "; ".join(
            [
                *[f"arguments.items[{n}] must be an object, not 1" for n in range(8)],
                "and 4 more problems",
            ]
        ),
    ),
    "a long one": (
        "x" * 300,
        (
            "the arguments are not JSON (Expecting value: line 1 column 1 (char 0)): "
            f"'{'x' * 200}' and 100 more"
        ),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_validation_errors(bench: Make, case: str) -> None:
    raw, text = BAD[case]
    tool = FakeTool("look", schema=SCHEMA)
    agent = bench(call("c", "look", raw), say("ok"), tools=[tool])

    assert agent.prompt().stop_reason == "end_turn"
    assert tool.started == []
    assert agent.results() == {"c": f"Error [VALIDATION_ERROR]: {text}"}
    assert agent.result_blocks()[0]["isError"] is True
    assert agent.history[1]["content"][0]["arguments"] == raw
    assert agent.of("tool/call")[0]["arguments"] == raw


def test_bad_arguments_do_not_stop_the_other_calls(bench: Make) -> None:
    tool = FakeTool("look", schema=SCHEMA)
    agent = bench(
        round_(call("a", "look", "{"), call("b", "look", {"path": "x"})), say("ok"), tools=[tool]
    )

    agent.prompt()

    assert tool.started == [{"path": "x"}]


@pytest.mark.parametrize("raw", ["", "  ", "{}"])
def test_empty_argument_string_means_no_arguments(bench: Make, raw: str) -> None:
    tool = FakeTool("look")
    agent = bench(call("c", "look", raw), say("ok"), tools=[tool])

    agent.prompt()

    assert tool.started == [{}]


def test_null_optional_args_equal_absent(bench: Make) -> None:
    tool = FakeTool("look", schema=SCHEMA)
    agent = bench(
        round_(
            call("a", "look", {"path": "x", "limit": None, "items": [{"name": "n", "more": None}]}),
            call("b", "look", {"path": "x", "items": [{"name": "n"}]}),
        ),
        say("ok"),
        tools=[tool],
    )

    agent.prompt()

    assert tool.started[0] == tool.started[1] == {"path": "x", "items": [{"name": "n"}]}


def test_arguments_that_fit_come_as_they_are() -> None:
    raw = '{"path": "a", "limit": 9, "mode": "b", "ratio": 1, "deep": false}'

    assert parse(raw, SCHEMA) == {
        "path": "a",
        "limit": 9,
        "mode": "b",
        "ratio": 1,
        "deep": False,
    }


def test_arguments_nested_without_end_are_refused() -> None:
    with pytest.raises(ToolError, match="the arguments are not JSON"):
        parse("[" * 100_000, SCHEMA)


@pytest.mark.parametrize("depth", [100, 500, 900])
def test_arguments_nested_too_deep_for_a_tool_are_refused(bench: Make, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    tool = FakeTool("look")
    agent = bench(call("c", "look", f'{{"any": {nested}}}'), say("ok"), tools=[tool])

    assert agent.prompt().stop_reason == "end_turn"
    assert tool.started == []
    assert agent.results() == {
        "c": "Error [VALIDATION_ERROR]: the arguments are nested more than 100 deep"
    }
