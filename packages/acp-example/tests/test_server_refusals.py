from collections.abc import Callable
from pathlib import Path

import pytest
from acp_wire import Wire
from loop_bench import Json, Make

from acp_example.store import Store
from llm_replay.scripted_model import hang, say

Connect = Callable[..., Wire]


@pytest.fixture
def connect(bench: Make) -> Connect:
    """Connect a client to an agent with a scripted model."""

    def make(*steps: Json, **facts: Json) -> Wire:
        return Wire(bench(*steps, rebuild=False, **facts))

    return make


def text(words: str) -> list[Json]:
    return [{"type": "text", "text": words}]


def test_second_prompt_while_one_runs_is_refused(connect: Connect) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        first = wire.ask("session/prompt", sessionId=session, prompt=text("hi"))
        failure = await wire.error("session/prompt", sessionId=session, prompt=text("me too"))

        assert failure["code"] == -32600
        assert failure["message"] == ("Invalid request: this session's prompt is still running")
        wire.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        await first

    connect(hang()).run(work)


REFUSED: list[tuple[str, Json, str]] = [
    (
        "session/new",
        {"cwd": "relative", "mcpServers": []},
        "cwd must be an absolute path, not 'relative'",
    ),
    (
        "session/new",
        {"cwd": "/no/such/place", "mcpServers": []},
        "cwd is no directory: '/no/such/place'",
    ),
    (
        "session/new",
        {"cwd": "/", "mcpServers": [{"name": "x", "command": "x", "args": [], "env": []}]},
        "mcpServers must be empty: this agent uses none",
    ),
    (
        "session/new",
        {"cwd": "/", "mcpServers": [], "additionalDirectories": ["/x"]},
        "additionalDirectories must be empty: a session has one directory",
    ),
    (
        "session/load",
        {"cwd": "/", "mcpServers": [], "sessionId": "nobody"},
        "there is no session 'nobody'; session/list names them",
    ),
    ("session/list", {"cursor": "x"}, "'x' is no cursor of an earlier list"),
    (
        "session/prompt",
        {"sessionId": "nobody", "prompt": text("hi")},
        "no session 'nobody' is open; load it, or begin a new one",
    ),
]


@pytest.mark.parametrize(("method", "params", "message"), REFUSED)
def test_what_cannot_be_done_says_why(
    connect: Connect, method: str, params: Json, message: str
) -> None:
    async def work(wire: Wire) -> None:
        failure = await wire.error(method, **params)

        assert failure["code"] == -32602
        assert failure["message"] == f"Invalid params: {message}"

    connect().run(work)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (text("  "), "empty prompt: it has no text and no image"),
        (
            [{"type": "image", "mimeType": "image/png", "data": "AAAA"}],
            "this model takes no images; choose another one, or describe it",
        ),
    ],
)
def test_prompt_that_cannot_be_taken_says_why(connect: Connect, blocks: Json, message: str) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        failure = await wire.error("session/prompt", sessionId=session, prompt=blocks)

        assert failure["message"] == f"Invalid params: {message}"

    connect().run(work)


@pytest.mark.parametrize(
    "method", ["session/fork", "session/delete", "authenticate", "made/up", "_extension"]
)
def test_unknown_method_is_method_not_found(connect: Connect, method: str) -> None:
    async def work(wire: Wire) -> None:
        failure = await wire.error(method, sessionId="s", cwd="/", mcpServers=[], methodId="m")

        assert failure["code"] == -32601

    connect().run(work)


WRONG: list[tuple[str, Json, str, str]] = [
    ("session/new", {"cwd": 7, "mcpServers": []}, "cwd", "Input should be a valid string"),
    ("session/new", {"mcpServers": []}, "cwd", "Field required"),
    ("session/set_mode", {"modeId": 7}, "modeId", "Input should be a valid string"),
    ("session/set_mode", {}, "modeId", "Field required"),
    ("session/set_config_option", {"value": "x"}, "configId", "Field required"),
    ("session/prompt", {"prompt": "hi"}, "prompt", "Input should be a valid list"),
]


@pytest.mark.parametrize(("method", "params", "field", "why"), WRONG)
def test_wrong_params_are_answered_with_the_field_that_is_wrong(
    connect: Connect, method: str, params: Json, field: str, why: str
) -> None:
    async def work(wire: Wire) -> None:
        known = {} if method == "session/new" else {"sessionId": await wire.new()}
        failure = await wire.error(method, **known, **params)

        assert (failure["code"], failure["message"]) == (-32602, "Invalid params")
        found = [(one["loc"][-1], one["msg"]) for one in failure["data"]["errors"]]
        assert (field, why) in found

    connect().run(work)


def test_log_that_cannot_be_written_is_told_and_the_session_must_be_loaded_again(
    connect: Connect, tmp_path: Path
) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        live = wire.agent.sessions.open[session]
        with pytest.MonkeyPatch.context() as disk:
            disk.setattr(live.writer, "write", _full_disk)
            failure = await wire.error("session/prompt", sessionId=session, prompt=text("hi"))
        assert failure["message"] == (
            "Internal error: the session's log can't be written: [Errno 28] No space left on device"
        )

        failure = await wire.error("session/prompt", sessionId=session, prompt=text("hi"))
        assert failure["message"] == (
            "Invalid request: this session broke off in a turn; load it again"
        )

        cwd = str(wire.agent.cwd)
        await wire.result("session/load", sessionId=session, cwd=cwd, mcpServers=[])
        await wire.result("session/prompt", sessionId=session, prompt=text("hi"))

    connect(say("ok"), store=Store(tmp_path)).run(work)


def _full_disk(_event: object) -> None:
    raise OSError(28, "No space left on device")


def test_session_that_cannot_be_begun_says_why(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where a directory is due")

    async def work(wire: Wire) -> None:
        cwd = str(wire.agent.cwd)
        failure = await wire.error("session/new", cwd=cwd, mcpServers=[])

        assert failure["code"] == -32603
        assert failure["message"].startswith(
            "Internal error: the session's log can't be written: [Errno 20] Not a directory"
        )

    connect(store=Store(tmp_path / "sessions")).run(work)


def test_update_that_is_none_of_the_protocol_is_told_to_whoever_looks(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(wire: Wire) -> None:
        session = await wire.new()
        client = wire.agent.sessions.open[session].client
        client.update({"sessionUpdate": "nonsense"})
        await client.flush()

    connect().run(work)

    assert "an update could not be sent" in caplog.text


MEANINGLESS: list[Json] = [
    {"method": "session/cancel"},
    {"method": "session/cancel", "params": {}},
    {"method": "session/cancel", "params": {"sessionId": 7}},
    {"method": "session/cancel", "params": {"sessionId": "nobody's"}},
    {"method": "$/cancel_request", "params": {"requestId": 1}},
    {"method": "_vendor/said", "params": {}},
]


@pytest.mark.parametrize("frame", MEANINGLESS)
def test_notification_without_a_meaning_leaves_no_trace(
    connect: Connect, caplog: pytest.LogCaptureFixture, frame: Json
) -> None:
    async def work(wire: Wire) -> None:
        wire.send({"jsonrpc": "2.0", **frame})
        await wire.new()

    connect().run(work)

    assert caplog.records == []
