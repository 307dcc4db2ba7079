import asyncio

import pytest
from loop_bench import Bench, FakeTool, Make

from acp_example.config import LogTable
from acp_example.exceptions import LogMismatchError
from acp_example.tools.task import Task
from llm_replay.scripted_model import call, say


def verifying(agent: Bench) -> Bench:
    """Let the agent read its logs back."""
    agent.host.composition.log = LogTable(verify=True)
    return agent


def test_log_is_read_back_and_tells_what_happened(bench: Make) -> None:
    agent = verifying(
        bench(
            call("c", "task", {"description": "d", "prompt": "p"}),
            say("ok"),
            children=[[call("x", "look"), say("seen")]],
            tools=[Task(), FakeTool("look")],
        )
    )
    agent.prompt()

    agent.run(agent.sessions.dispose())

    assert agent.results() == {"c": "seen"}


def test_log_that_tells_something_else_is_a_fault(bench: Make) -> None:
    agent = verifying(bench(say("ok")))
    agent.prompt()
    agent.session.conversation.nodes.pop()
    agent.checked = False

    with pytest.raises(LogMismatchError) as caught:
        asyncio.run(agent.sessions.dispose())

    assert str(caught.value) == (
        "1: the log tells another history than the session had\n"
        "  hint: this is a fault of the agent; keep the log and report it"
    )
    assert agent.sessions.open == {}
