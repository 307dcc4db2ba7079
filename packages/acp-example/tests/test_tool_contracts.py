from dataclasses import fields
from typing import Any

import pytest

from acp_example.tools import Tool, ToolSpec
from acp_example.tools.bash import Bash
from acp_example.tools.edit import Edit
from acp_example.tools.glob import Glob
from acp_example.tools.grep import Grep
from acp_example.tools.read import Read
from acp_example.tools.todo import Todo
from acp_example.tools.write import Write

TOOLS: list[Tool] = [Bash(), Edit(), Glob(), Grep(), Read(), Todo(), Write()]
each = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)


@each
def test_every_tool_declares_contract(tool: Tool) -> None:
    spec = tool.spec

    assert {field.name for field in fields(ToolSpec)} == set(ToolSpec.__slots__)
    assert spec.description.endswith((".", ")"))
    assert spec.kind in {"read", "edit", "search", "execute", "think"}
    assert spec.mode in {"parallel", "exclusive"}
    assert spec.path_policy in {"none", "read", "write"}
    assert spec.timeout_s is not None
    assert spec.annotations
    assert (spec.mode == "exclusive") == (spec.kind in {"edit", "think"})
    assert (spec.path_policy == "write") == (spec.kind == "edit")


@each
def test_a_schema_is_one_and_admits_nothing_else(tool: Tool) -> None:
    assert tool.spec.schema["type"] == "object"
    assert tool.spec.schema["additionalProperties"] is False
    assert set(tool.spec.schema["required"]) <= set(tool.spec.schema["properties"])
    for about in tool.spec.schema["properties"].values():
        assert about["description"]


@pytest.mark.parametrize(
    ("tool", "arguments", "title", "locations"),
    [
        (Bash(), {"command": "ls -l\nrm x"}, "ls -l", ["."]),
        (Bash(), {"command": "ls", "workdir": "src"}, "ls", ["src"]),
        (Bash(), {}, "Run a command", ["."]),
        (Edit(), {"path": "a.py"}, "Edit a.py", ["a.py"]),
        (Edit(), {}, "Edit a file", []),
        (Glob(), {"pattern": "*.py"}, "Find *.py", ["."]),
        (Glob(), {"path": "src"}, "Find files", ["src"]),
        (Grep(), {"pattern": "x", "path": "src"}, "Search for x", ["src"]),
        (Grep(), {"path": 7}, "Search for text", ["."]),
        (Read(), {"path": "a.py"}, "Read a.py", ["a.py"]),
        (Read(), {"path": ["a.py"]}, "Read a file", []),
        (Todo(), {}, "Update the plan", []),
        (Write(), {"path": "a.py"}, "Write a.py", ["a.py"]),
        (Write(), {"path": ""}, "Write a file", []),
    ],
)
def test_a_call_is_titled_and_located_whatever_the_model_sends(
    tool: Tool, arguments: dict[str, Any], title: str, locations: list[str]
) -> None:
    assert tool.spec.title(arguments) == title
    assert tool.spec.locations(arguments) == locations
