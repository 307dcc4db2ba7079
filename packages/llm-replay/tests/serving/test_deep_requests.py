"""However deeply a request is nested, it is kept, compared and searched."""

import asyncio
from typing import Any

import pytest
from log_kit import chunks, text
from replay_kit import Request, collect, serving, texts

from llm_replay.exceptions import RequestError
from llm_replay.rounds import raw, say
from llm_replay.scripted_model import scripted


def nested(levels: int, inner: object) -> Any:  # noqa: ANN401  JSON
    for _ in range(levels):
        inner = [inner]
    return inner


def asked(levels: int, said: str, **keys: object) -> Request:
    return Request(messages=[{"role": "user", "content": nested(levels, said), **keys}])


@pytest.mark.parametrize("levels", [1000, 100_000])
def test_a_placeholder_finds_what_is_nested_however_deeply(levels: int) -> None:
    model = serving(chunks(text("<{{fromRequest:id-\\d}}>")))

    assert texts(asyncio.run(collect(model.stream(asked(levels, "id-7"))))) == ["<id-7>"]


@pytest.mark.parametrize("levels", [1000, 100_000])
def test_a_scripted_model_compares_requests_however_deep_they_are(levels: int) -> None:
    model = scripted(say("a"), say("b"), say("c"))
    for said in ("x", "x", "y"):
        stream = model(asked(levels, said))
    with pytest.raises(RequestError, match="differs from the request before"):
        asyncio.run(collect(stream))

    assert model.requests[0].roles() == ["user"]


def test_ids_and_roles_that_are_none_are_told_in_few_words() -> None:
    deep = nested(100_000, "x")
    blocks = [{"type": "tool-call", "id": deep}, {"type": "tool-result", "toolCallId": deep}]
    model = scripted(raw([{"type": "finish", "reason": {"kind": "stop"}}]), extends=False)
    stream = model(Request(messages=[{"role": deep, "content": blocks}]))
    with pytest.raises(RequestError) as caught:
        asyncio.run(collect(stream))

    assert caught.value.problems == ("messages[0]: a call has no id",)
    assert len(model.requests[0].roles()[0]) < 100
    with pytest.raises(LookupError, match="no tool result answers 'c'; there is"):
        model.requests[0].tool_result("c")


def test_a_chunk_of_a_step_may_nest_without_end() -> None:
    deep: Any = {"type": "x", "deep": nested(100_000, "x")}
    model = scripted(raw([deep]))

    assert len(asyncio.run(collect(model(Request())))) == 1
