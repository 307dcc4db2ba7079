import asyncio
import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from acp_wire import Wire
from loop_bench import FakeTool, Json, Make

from acp_example.store import Store
from acp_example.tools import Diff, ToolResult
from llm_replay.scripted_model import call, error, hang, round_, say, scripted, think
from llm_replay.seam import ModelInfo

Connect = Callable[..., Wire]


@pytest.fixture
def connect(bench: Make) -> Connect:
    """Connect a client to an agent with a scripted model."""

    def make(*steps: Json, **facts: Json) -> Wire:
        return Wire(bench(*steps, rebuild=False, **facts))

    return make


def text(words: str) -> list[Json]:
    return [{"type": "text", "text": words}]


def test_initialize_offers_what_this_agent_can_do(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        result = await wire.result("initialize", protocolVersion=1, clientCapabilities={})

        assert result["protocolVersion"] == 1
        assert result["agentInfo"]["name"] == "acp-example"
        assert result["authMethods"] == []
        assert result["agentCapabilities"] == {
            "loadSession": True,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
            "sessionCapabilities": {"list": {}},
        }

    connect().run(work)


def test_prompt_streams_and_every_update_precedes_its_answer(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        result = await wire.result("session/prompt", sessionId=session, prompt=text("hi"))

        assert result == {"stopReason": "end_turn"}
        kinds = [update["sessionUpdate"] for update in wire.updates()]
        assert kinds == ["agent_thought_chunk", "agent_message_chunk", "agent_message_chunk"]
        assert "result" in wire.frames[-1]

    connect(round_(think("hm"), say("hello", split=2))).run(work)


def test_tool_call_goes_from_pending_to_completed_with_its_place(connect: Connect) -> None:
    tool = FakeTool("look", "seen", kind="read", locations=lambda _given: ["a.txt"])

    async def work(wire: Wire) -> None:
        session = await wire.new()
        await wire.result("session/prompt", sessionId=session, prompt=text("hi"))

        announced, started, settled = wire.updates()[:3]
        assert announced["locations"] == [{"path": str(wire.agent.cwd / "a.txt")}]
        assert (announced["status"], started["status"], settled["status"]) == (
            "pending",
            "in_progress",
            "completed",
        )

    connect(call("c", "look"), say("ok"), tools=[tool]).run(work)


def test_plan_usage_and_diffs_are_frames_of_the_protocol(connect: Connect) -> None:
    entries = [{"content": "one", "priority": "high", "status": "pending"}]
    rich = ToolResult(
        text="ok",
        plan=entries,
        diffs=[Diff("/a", None, "new"), Diff("/b", "old", "new")],
        images=[{"type": "image", "mimeType": "image/png", "data": "AAAA"}],
        details={"n": 1},
    )

    async def work(wire: Wire) -> None:
        session = await wire.new()
        result = await wire.result("session/prompt", sessionId=session, prompt=text("hi"))

        kinds = [update["sessionUpdate"] for update in wire.updates()]
        assert kinds.count("plan") == 1
        assert kinds.count("usage_update") == 1
        assert result["usage"] == {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}

    wire = connect(
        round_(call("c", "do"), usage={"inputTokens": 5, "outputTokens": 2}),
        say("ok"),
        tools=[FakeTool("do", rich)],
    )
    wire.agent.model.models = (ModelInfo(id="scripted", context_window=100),)
    wire.run(work)


@pytest.mark.parametrize(
    ("option", "stop", "ran"),
    [("allow-once", "end_turn", 1), ("reject-once", "end_turn", 0), (None, "end_turn", 0)],
)
def test_permission_is_asked_of_the_client(
    connect: Connect, option: str | None, stop: str, ran: int
) -> None:
    tool = FakeTool("run", kind="execute")

    def answer(_frame: Json) -> Json:
        outcome: Json = {"outcome": "cancelled"}
        if option is not None:
            outcome = {"outcome": "selected", "optionId": option}
        return {"result": {"outcome": outcome}}

    async def work(wire: Wire) -> None:
        wire.answer = answer
        session = await wire.new()
        result = await wire.result("session/prompt", sessionId=session, prompt=text("hi"))

        assert result["stopReason"] == stop
        assert len(tool.started) == ran
        request = next(f for f in wire.frames if f.get("method") == "session/request_permission")
        assert request["params"]["toolCall"]["toolCallId"] == "1.1.1"
        assert [option["optionId"] for option in request["params"]["options"]] == [
            "allow-once",
            "allow-always",
            "reject-once",
            "reject-always",
        ]

    connect(call("c", "run"), say("ok"), tools=[tool], permission_mode="workspace-write").run(work)


@pytest.mark.parametrize(
    "reply",
    [
        {"error": {"code": -32601, "message": "Method not found"}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "made-up"}}},
        {"result": {"nonsense": 1}},
    ],
    ids=["not implemented", "an option nobody offered", "no outcome"],
)
def test_client_without_an_answer_fails_closed(connect: Connect, reply: Json) -> None:
    tool = FakeTool("run", kind="execute")

    async def work(wire: Wire) -> None:
        wire.answer = lambda _frame: reply
        session = await wire.new()
        failure = await wire.error("session/prompt", sessionId=session, prompt=text("hi"))

        assert failure["code"] == -32603
        assert failure["data"] == {"code": "APPROVAL_UNAVAILABLE"}
        assert tool.started == []

    connect(call("c", "run"), tools=[tool], permission_mode="workspace-write").run(work)


def test_failed_turn_answers_with_its_code_and_the_session_goes_on(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        failure = await wire.error("session/prompt", sessionId=session, prompt=text("hi"))

        assert failure == {
            "code": -32603,
            "message": "Internal error: turn failed: no money",
            "data": {"code": "QUOTA"},
        }
        await wire.result("session/prompt", sessionId=session, prompt=text("again"))

    connect(round_(finish=error("QUOTA", "no money")), say("ok")).run(work)


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_stop_reasons_are_those_of_the_protocol(connect: Connect, stop: str) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        result = await wire.result("session/prompt", sessionId=session, prompt=text("hi"))
        assert result["stopReason"] == stop

    connect(round_(say("x"), finish=stop.replace("_", "-"))).run(work)


def test_cancel_answers_the_prompt_with_cancelled(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        for other in (session, "unknown"):
            wire.send(
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": other}}
            )
        prompt = wire.ask("session/prompt", sessionId=session, prompt=text("hi"))
        await wire.until(lambda frame: frame.get("method") == "session/update")
        for _ in range(2):
            wire.send(
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
            )

        assert (await prompt)["result"] == {"stopReason": "cancelled"}

    connect(hang(after=say("half", ended=False))).run(work)


def test_end_of_input_cancels_what_runs_and_answers_it(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        prompt = wire.ask("session/prompt", sessionId=session, prompt=text("hi"))
        await wire.until(lambda frame: frame.get("method") == "session/update")
        wire.end()

        assert (await prompt)["result"] == {"stopReason": "cancelled"}

    wire = connect(hang(after=say("half", ended=False)))
    wire.run(work)

    log = wire.agent.log()
    reason = {"kind": "aborted", "reason": {"kind": "disposed"}}
    assert log.events[-1]["data"]["reason"] == reason


def test_mode_and_options_can_be_read_and_set(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        cwd = str(wire.agent.cwd)
        new = await wire.result("session/new", cwd=cwd, mcpServers=[])
        session = new["sessionId"]
        assert new["modes"]["currentModeId"] == "full-access"
        assert new["configOptions"][0]["currentValue"] == "scripted/scripted"

        assert await wire.result("session/set_mode", sessionId=session, modeId="read-only") == {}
        bad = await wire.error("session/set_mode", sessionId=session, modeId="yolo")
        assert bad["message"].startswith("Invalid params: no mode is named 'yolo'")

        set_to = await wire.result(
            "session/set_config_option",
            sessionId=session,
            configId="model",
            value="scripted/scripted",
        )
        assert set_to["configOptions"][0]["id"] == "model"
        bad = await wire.error(
            "session/set_config_option", sessionId=session, configId="model", value="x"
        )
        assert bad["message"] == (
            "Invalid params: 'model' can't be 'x'; it can be 'scripted/scripted'"
        )

    connect().run(work)


def test_session_can_be_listed_and_loaded(connect: Connect, tmp_path: Path) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        await wire.result("session/prompt", sessionId=session, prompt=text("hello there"))
        seen = len(wire.updates())
        cwd = str(wire.agent.cwd)
        (listed,) = (await wire.result("session/list"))["sessions"]
        assert (listed["sessionId"], listed["title"]) == (session, "hello there")

        loaded = await wire.result("session/load", sessionId=session, cwd=cwd, mcpServers=[])

        assert loaded["modes"]["currentModeId"] == "full-access"
        told = wire.updates()[seen:]
        assert [update["sessionUpdate"] for update in told] == [
            "user_message_chunk",
            "agent_message_chunk",
        ]
        await wire.result("session/prompt", sessionId=session, prompt=text("again"))

    connect(say("hi"), say("again"), store=Store(tmp_path)).run(work)


def test_fault_of_a_fixture_reaches_the_client_as_an_error(bench: Make) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        failure = await wire.error("session/prompt", sessionId=session, prompt=text("hi"))

        assert failure["data"] == {"code": "REPLAY_FAULT"}

    Wire(bench(model=scripted())).run(work)


def test_two_sessions_prompt_side_by_side(connect: Connect) -> None:
    gate = asyncio.Event()

    async def wait(_given: Mapping[str, Any], _context: object) -> str:
        await gate.wait()
        return "through"

    async def work(wire: Wire) -> None:
        first, second = await wire.new(), await wire.new()
        slow = wire.ask("session/prompt", sessionId=first, prompt=text("wait"))
        await wire.until(
            lambda frame: frame.get("params", {}).get("update", {}).get("status") == "in_progress"
        )
        await wire.result("session/prompt", sessionId=second, prompt=text("go"))
        gate.set()
        assert (await slow)["result"]["stopReason"] == "end_turn"

    connect(
        call("c", "wait"), say("one"), children=[[say("two")]], tools=[FakeTool("wait", wait)]
    ).run(work)


def test_image_prompt_reaches_a_model_that_takes_images(connect: Connect) -> None:
    data = base64.b64encode(b"png").decode()
    image = {"type": "image", "mimeType": "image/png", "data": data}

    async def work(wire: Wire) -> None:
        session = await wire.new()
        await wire.result("session/prompt", sessionId=session, prompt=[*text("see"), image])

    wire = connect(say("a picture"))
    wire.agent.model.models = (ModelInfo(id="scripted", input_modalities=("text", "image")),)
    wire.run(work)

    content = wire.agent.model.requests[0].messages[0]["content"]
    assert content[1] == {"type": "image", "attachment": {"mimeType": "image/png", "data": data}}
