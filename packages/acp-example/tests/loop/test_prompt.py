import pytest
from loop_bench import FakeTool, Make

from acp_example.options import set_mode
from acp_example.prompt import system_prompt
from llm_replay.scripted_model import say

LINES = {
    "read a file before you edit it": {"read", "edit"},
    "independent calls": {"glob"},
    "fresh shell": {"bash"},
    "Error [": {"glob"},
    "todo tool": {"todo"},
}


@pytest.mark.parametrize(("line", "tools"), LINES.items())
def test_system_prompt_speaks_of_a_tool_where_it_is_offered(line: str, tools: set[str]) -> None:
    others = {"read", "bash", "todo", "edit"} - tools

    assert line in system_prompt(cwd="/ws", tools=tools)
    if line not in ("independent calls", "Error ["):
        assert line not in system_prompt(cwd="/ws", tools=others)
    assert line not in system_prompt(cwd="/ws", tools=())


def test_system_prompt_without_tools_is_about_none() -> None:
    assert system_prompt(cwd="/ws", tools=()) == (
        "You are a coding agent. You work in the directory /ws.\n\n"
        "- Say what you did and found in a few sentences when you are done. "
        "Do not invent results.\n"
    )


def test_system_prompt_follows_the_mode(bench: Make) -> None:
    agent = bench(
        say("one"),
        say("two"),
        tools=[FakeTool("read"), FakeTool("edit", path_policy="write")],
        permission_mode="workspace-write",
    )

    agent.prompt()
    set_mode(agent.session, "read-only")
    agent.prompt()

    systems = [request.system for request in agent.model.requests]
    assert ["before you edit" in (system or "") for system in systems] == [True, False]
