import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from replay_kit import Request, Runtime, collect, texts

from llm_replay.exceptions import (
    RecordedFailureError,
    ReplayExhaustedError,
    RequestError,
    UnclaimedScriptError,
    UnknownSessionError,
)
from llm_replay.requests import RecordedRequest
from llm_replay.scripted_model import (
    ScriptedModel,
    call,
    fail,
    hang,
    raw,
    round_,
    say,
    scripted,
    think,
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def read(model: ScriptedModel, *messages: dict[str, Any], **request: str) -> list[str]:
    asked = Request(messages=list(messages), **request)  # type: ignore[arg-type]  # any field
    stream = model.stream(asked)
    return texts(asyncio.run(collect(stream)))


def test_a_scripted_model_is_a_handler_and_a_provider(runtime: Runtime) -> None:
    model = scripted(say("one"), say("two"))
    runtime.register_provider("scripted", model)
    assert texts(asyncio.run(collect(runtime.stream(Request(), "scripted")))) == ["one"]
    assert ([info.id for info in model.models], model.retry_policy) == (["scripted"], None)
    assert model.name == "Scripted"

    runtime.use(model)
    assert texts(asyncio.run(collect(runtime.stream(Request())))) == ["two"]
    model.assert_consumed()


def test_every_builder_makes_a_step() -> None:
    model = scripted(think("hm"), round_(call("c", "ls")), raw([]), fail("X"), hang())

    assert [read(model) for _ in range(3)] == [[], [], []]
    with pytest.raises(RecordedFailureError):
        read(model)
    asyncio.run(model.stream(Request()).aclose())
    model.assert_consumed()


def test_requests_are_kept_in_order_even_if_nobody_reads_the_stream() -> None:
    model = scripted(say("one"), say("two"))
    read(model, user("a"))
    asyncio.run(model.stream(Request(messages=[user("a"), user("b")])).aclose())

    assert [len(request.messages) for request in model.requests] == [1, 2]


def test_further_sessions_take_the_scripts_of_children_in_order() -> None:
    model = scripted(say("parent"), children=[[say("first")], [say("second")]])

    words = [read(model, session_id=name) for name in ("p", "x", "y")]
    assert words == [["parent"], ["first"], ["second"]]
    with pytest.raises(UnknownSessionError):
        read(model, session_id="z")


def test_a_request_with_an_unanswered_call_is_raised_and_raised_again() -> None:
    asked = {"role": "assistant", "content": [{"type": "tool-call", "id": "c"}]}
    model = scripted(say("one"), say("two"))
    read(model, user("a"))
    with contextlib.suppress(RequestError):  # as a runtime that swallows everything
        read(model, user("a"), asked)

    with pytest.raises(RequestError) as caught:
        model.assert_consumed()
    assert str(caught.value) == (
        "request 2: the runtime asked the model for something odd\n"
        "  messages[1]: call 'c' has no result\n"
        "  hint: repair the runtime; if the test means it, see the README on requests"
    )


def test_a_history_must_grow_in_each_session_by_itself() -> None:
    model = scripted(say("1"), say("2"), children=[[say("3")]])
    read(model, user("a"), user("b"))
    read(model, user("x"), session_id="child")

    with pytest.raises(RequestError, match=r"messages\[0\]: differs from the request before"):
        read(model, user("changed"), user("b"))


def test_a_compaction_may_rewrite_the_history() -> None:
    model = scripted(say("1"), say("summary"), say("2"))
    read(model, user("a"), user("b"))
    read(model, user("summarize"), purpose="compaction")
    read(model, user("summary"))

    model.assert_consumed()


def test_a_request_for_another_purpose_has_messages_of_its_own() -> None:
    model = scripted(say("1"), say("title"), say("title"), say("2"), say("3"))
    read(model, user("a"), purpose="turn")
    read(model, user("name this"), purpose="session-title")
    read(model, user("name it again"), purpose="session-title")
    read(model, user("a"), user("b"), purpose="turn")

    with pytest.raises(RequestError, match=r"messages\[1\]: was there in the request before"):
        read(model, user("a"), purpose="turn")


def test_a_test_may_say_that_histories_are_rewritten() -> None:
    model = scripted(say("1"), say("2"), extends=False)
    read(model, user("a"))
    read(model, user("b"))

    model.assert_consumed()


def test_a_request_must_be_what_the_log_tells() -> None:
    def rebuild(request: RecordedRequest) -> list[dict[str, Any]]:
        return logged[: len(request.messages)]

    logged = [user("a")]
    model = scripted(say("1"), say("2"), rebuild=rebuild)
    read(model, user("a"))

    with pytest.raises(RequestError, match="messages: can't be rebuilt from the session log"):
        read(model, user("a"), user("not logged"))


def test_left_over_steps_and_a_call_too_many_are_told_apart() -> None:
    model = scripted(say("one"))
    with pytest.raises(UnclaimedScriptError, match="script: 0 of 1 calls were served"):
        model.assert_consumed()
    model.assert_no_fault()

    read(model)
    with contextlib.suppress(ReplayExhaustedError):
        read(model)
    with pytest.raises(ReplayExhaustedError, match="script: the agent asked for model call 2"):
        model.assert_no_fault()


def test_directories_and_placeholders_are_live_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/h")
    model = scripted(say("{{home}} {{fromRequest:id-\\d}}", split=0))

    stream = model.stream(Request(messages=[user("id-7")]))
    [_, end, _] = asyncio.run(collect(stream))
    assert end == {"type": "block-end", "index": 0, "block": {"type": "text", "text": "/h id-7"}}


def test_a_scripted_model_writes_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSH_SNAPSHOT_VERDICT_DIR", str(tmp_path))
    read(scripted(say("one")))

    assert list(tmp_path.iterdir()) == []


def test_what_a_runtime_does_to_its_chunks_does_not_change_the_script() -> None:
    block, stream = say("x"), raw([{"type": "text-delta", "index": 0, "text": "x"}])
    model = scripted(block, stream, block, stream)
    served = [asyncio.run(collect(model(Request()))) for _ in range(2)]
    spoilt: list[Any] = [*served[0], *served[1]]
    for chunk in spoilt:
        chunk["text"] = chunk["block"] = "spoilt"
    served = [asyncio.run(collect(model(Request()))) for _ in range(2)]

    assert "spoilt" not in str(served)
