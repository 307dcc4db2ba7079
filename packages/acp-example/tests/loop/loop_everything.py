"""A session in which everything happens that a log has an event for."""

from loop_bench import Bench, FakeTool, Json, Make, window

from acp_example.options import set_mode, set_option
from acp_example.tools import Diff, ToolResult
from acp_example.tools.task import Task
from llm_replay.scripted_model import call, error, round_, say, think

FULL: Json = {"inputTokens": 8000, "outputTokens": 0}
ENTRIES: Json = [{"content": "first", "priority": "medium", "status": "pending"}]
RICH = ToolResult(
    text="done",
    plan=ENTRIES,
    diffs=[Diff("/a", "old", "new"), Diff("/b", None, "made")],
    images=[{"type": "image", "mimeType": "image/png", "data": "AAAA"}],
    details={"lines": 2},
)


def everything(bench: Make) -> Bench:
    """Run a session with thoughts, calls, a question, a retry, a fork and a summary."""
    fork = {"description": "d", "prompt": "p", "mode": "fork"}
    agent = bench(
        round_(finish=error("SERVER")),
        round_(think("hm"), say("I look"), call("a", "look"), call("b", "run")),
        say("one"),
        round_(call("c", "task", fork), usage=FULL),
        say("the summary"),
        say("two"),
        children=[[say("of the child")]],
        tools=[
            FakeTool("look", RICH, kind="read", locations=lambda _given: ["a.txt"]),
            FakeTool("run", kind="execute"),
            Task(),
        ],
        permission_mode="workspace-write",
    )
    window(agent.model, 10_000)
    agent.clock.auto = True
    agent.client.queue.append("reject_once")
    agent.prompt("first")
    set_mode(agent.session, "full-access")
    set_option(agent.session, "model", "scripted/scripted")
    agent.prompt("second")
    return agent
