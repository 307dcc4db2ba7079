import dataclasses
import json
from typing import Any

import pytest
from loop_bench import FakeTool
from pydantic import ValidationError

from acp_example.builtin import Config, apply
from acp_example.exceptions import FatalToolError, PluginError, ToolError
from acp_example.plugins import Context
from acp_example.tools import CallInfo, Tool, ToolRegistry, ToolResult, ToolSpec
from acp_example.tools.arguments import parse

CONTRACTS = {
    "bash": ("execute", "parallel", "read", 610),
    "edit": ("edit", "exclusive", "write", 30),
    "glob": ("search", "parallel", "read", 30),
    "grep": ("search", "parallel", "read", 30),
    "read": ("read", "parallel", "read", 30),
    "task": ("think", "parallel", "none", None),
    "todo": ("think", "exclusive", "none", 5),
    "write": ("edit", "exclusive", "write", 30),
}


def built_in() -> list[Tool]:
    registry = ToolRegistry()
    apply(Context(tools=registry), Config())
    return registry.all()


def test_every_tool_declares_contract() -> None:
    tools = built_in()

    declared = {
        tool.spec.name: (
            tool.spec.kind,
            tool.spec.mode,
            tool.spec.path_policy,
            tool.spec.timeout_s,
        )
        for tool in tools
    }
    assert list(declared) == list(CONTRACTS)
    assert declared == CONTRACTS
    for tool in tools:
        spec = tool.spec
        places = spec.locations({"path": "a", "workdir": "a"})
        assert places == ([] if spec.path_policy == "none" else ["a"])
        assert spec.description
        assert spec.schema["type"] == "object"
        assert spec.schema["additionalProperties"] is False
        assert set(spec.schema["required"]) <= set(spec.schema["properties"])
        assert all(part["description"] for part in spec.schema["properties"].values())
        assert spec.annotations
        assert spec.title({})


@pytest.mark.parametrize("tool", built_in(), ids=lambda tool: tool.spec.name)
@pytest.mark.parametrize(
    "given", [{}, {"path": 7, "command": None, "pattern": [], "description": {}, "edits": "x"}]
)
def test_titles_and_places_cope_with_anything_a_model_sends(
    tool: Tool, given: dict[str, Any]
) -> None:
    assert isinstance(tool.spec.title(given), str)
    assert all(isinstance(path, str) for path in tool.spec.locations(given))
    tool.spec.review(given, "read-only")


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ToolSpec)])
def test_contract_that_lacks_a_part_is_no_contract(field: str) -> None:
    given = {
        one.name: getattr(FakeTool("a").spec, one.name) for one in dataclasses.fields(ToolSpec)
    }
    del given[field]
    optional = {"locations", "review"}

    if field in optional:
        ToolSpec(**given)
    else:
        with pytest.raises(TypeError, match=field):
            ToolSpec(**given)


@pytest.mark.parametrize("tool", built_in(), ids=lambda tool: tool.spec.name)
def test_no_tool_takes_a_key_that_it_does_not_know(tool: Tool) -> None:
    with pytest.raises(ToolError, match="has an unknown key 'no_such_key'"):
        parse('{"no_such_key": 1}', tool.spec.schema)


@pytest.mark.parametrize("tool", built_in(), ids=lambda tool: tool.spec.name)
@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            "path=a",
            "the arguments are not JSON (Expecting value: line 1 column 1 (char 0)): 'path=a'",
        ),
        (
            '{"path": ',
            (
                "the arguments are not JSON "
                "(Expecting value: line 1 column 10 (char 9)): '{\"path\": '"
            ),
        ),
        ("[]", "the arguments must be a JSON object, not '[]'"),
    ],
    ids=["not-json", "truncated", "array"],
)
def test_every_tool_refuses_bad_arguments(tool: Tool, raw: str, text: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse(raw, tool.spec.schema)

    assert str(caught.value) == f"Error [VALIDATION_ERROR]: {text}"


@pytest.mark.parametrize("tool", built_in(), ids=lambda tool: tool.spec.name)
def test_every_tool_refuses_arguments_of_the_wrong_type_and_none_at_all(tool: Tool) -> None:
    wrong = dict.fromkeys(tool.spec.schema["properties"], True)
    for raw in (json.dumps(wrong), ""):
        with pytest.raises(ToolError) as caught:
            parse(raw, tool.spec.schema)

        assert caught.value.code == "VALIDATION_ERROR"
        for key in tool.spec.schema["required"]:
            told = f"arguments.{key} must be a" if raw else f"arguments lacks {key!r}"
            assert told in caught.value.message


def test_tools_can_be_chosen_and_taken_away() -> None:
    registry = ToolRegistry()

    undo = apply(Context(tools=registry), Config(enabled=["read", "bash"]))

    assert [tool.spec.name for tool in registry.all()] == ["bash", "read"]
    assert registry.get("read") is not None
    undo()
    assert registry.all() == []
    with pytest.raises(ValidationError):
        Config(enabled=["rm"])  # type: ignore[list-item] # wrong on purpose


def test_two_tools_of_one_name_are_refused() -> None:
    first, second = FakeTool("same"), FakeTool("same")
    registry = ToolRegistry([first])

    with pytest.raises(ValueError, match=r"^two tools are named 'same'$"):
        registry.register(second)

    undo = registry.register(FakeTool("other"))
    undo()
    registry.register(FakeTool("other"))
    undo()
    assert len(registry.all()) == 2


def test_names_of_a_call_come_from_its_place() -> None:
    info = CallInfo(lineage="1", turn=2, step=3, k=4, call_id="random")

    assert info.position == "2.3.4"


def test_visible_text_has_the_notice_in_brackets() -> None:
    assert ToolResult(text="a").visible == "a"
    assert ToolResult(text="a", notice="more at line 9").visible == "a\n\n[more at line 9]"


def test_errors_say_their_code_and_keep_their_facts() -> None:
    error = FatalToolError("CODE", "why")
    plugin = PluginError(plugin="p", why="it broke", hint="mend it")

    assert (str(error), error.code, error.message) == ("Error [CODE]: why", "CODE", "why")
    assert str(plugin) == "plugin 'p': it broke\n  hint: mend it"
    assert plugin.plugin == "p"
