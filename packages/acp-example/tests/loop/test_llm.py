import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from loop_bench import Json

from acp_example.exceptions import ModelError
from acp_example.llm import Llm, ModelRequest, failure_of
from llm_replay.exceptions import ReplayError
from llm_replay.seam import ModelInfo

REQUEST = ModelRequest(
    provider="p",
    model="m",
    system=None,
    messages=[],
    tools=[],
    session_id=None,
    lineage=None,
)


class Adapter:
    """A provider that streams what it is given and then raises."""

    name = "P"
    models: Sequence[ModelInfo] = (ModelInfo(id="m"),)
    retry_policy = None

    def __init__(self, *chunks: Json, error: BaseException | None = None) -> None:
        self.chunks = chunks
        self.error = error
        self.closed = False

    async def stream(self, _request: object, /) -> AsyncGenerator[Json, None]:
        try:
            for chunk in self.chunks:
                yield chunk
            if self.error is not None:
                raise self.error
        finally:
            self.closed = True


def collected(llm: Llm) -> list[Json]:
    async def work() -> list[Json]:
        return [chunk async for chunk in llm.stream(REQUEST)]

    return asyncio.run(work())


def finish(code: str, message: str, kind: str = "error", **more: Any) -> Json:  # noqa: ANN401  fields of a failure
    failure = {"message": message, "code": code, **more}
    return {"type": "finish", "reason": {"kind": kind, "failure": failure}}


def test_handlers_are_asked_in_order_and_may_pass_on() -> None:
    llm, seen = Llm(), []

    def passing(_request: object) -> None:
        seen.append("passed")

    def answering(request: object) -> AsyncGenerator[Json, None]:
        seen.append("answered")
        return Adapter("in front").stream(request)

    llm.use(passing)
    undo = llm.use(answering)
    llm.register_provider("p", Adapter("behind"))

    assert collected(llm) == ["in front"]
    assert seen == ["passed", "answered"]
    assert llm.intercepted
    undo()
    undo()
    assert collected(llm) == ["behind"]


def test_provider_answers_under_its_name_until_it_is_taken_away() -> None:
    llm = Llm()
    undo = llm.register_provider("p", Adapter("chunk"))

    assert collected(llm) == ["chunk"]
    with pytest.raises(ValueError, match="two providers are named 'p'"):
        llm.register_provider("p", Adapter())
    undo()

    assert collected(llm) == [finish("NO_PROVIDER", "no provider is named 'p'; there is none")]
    llm.register_provider("q", Adapter())
    assert collected(llm) == [finish("NO_PROVIDER", "no provider is named 'p'; there is 'q'")]


def test_what_an_adapter_raises_in_its_stream_becomes_the_last_chunk() -> None:
    llm, adapter = Llm(), Adapter("chunk", error=ModelError(code="SERVER", message="down"))
    llm.register_provider("p", adapter)

    assert collected(llm) == ["chunk", finish("SERVER", "down")]
    assert adapter.closed


def test_what_an_adapter_raises_when_asked_becomes_the_only_chunk() -> None:
    class Refusing(Adapter):
        def stream(self, _request: object, /) -> AsyncGenerator[Json, None]:
            raise ModelError(code="ABORTED", message="gone")

    llm = Llm()
    llm.register_provider("p", Refusing())

    assert collected(llm) == [finish("ABORTED", "gone", "aborted")]


@pytest.mark.parametrize("at_once", [True, False])
def test_fault_of_a_fixture_passes_through_untouched(*, at_once: bool) -> None:
    class Faulty(Adapter):
        def stream(self, request: object, /) -> AsyncGenerator[Json, None]:
            if at_once:
                raise ReplayError("nothing left")
            return super().stream(request)

    llm = Llm()
    llm.register_provider("p", Faulty(error=ReplayError("nothing left")))

    with pytest.raises(ReplayError, match="nothing left"):
        collected(llm)


def test_consumer_that_leaves_closes_the_stream() -> None:
    llm, adapter = Llm(), Adapter("one", "two")
    llm.register_provider("p", adapter)

    async def work() -> None:
        stream = llm.stream(REQUEST)
        await anext(stream)
        await stream.aclose()

    asyncio.run(work())

    assert adapter.closed


def test_catalogue_names_a_model() -> None:
    llm = Llm()
    llm.register_provider("p", Adapter())

    assert llm.model("p", "m") == ModelInfo(id="m")
    assert llm.model("p", "other") is None
    assert llm.model("q", "m") is None


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (RuntimeError("oops"), {"message": "oops", "code": "UNKNOWN"}),
        (RuntimeError(), {"message": "RuntimeError", "code": "UNKNOWN"}),
        (OSError(2, "gone"), {"message": "[Errno 2] gone", "code": "UNKNOWN"}),
        (
            ModelError(
                code="RATE_LIMIT", message="slow", status=429, retry_after_ms=50, request_id="r"
            ),
            {
                "message": "slow",
                "code": "RATE_LIMIT",
                "status": 429,
                "providerRetryAfterMs": 50,
                "requestId": "r",
            },
        ),
    ],
)
def test_failure_is_told_in_the_words_of_the_stream(error: Exception, failure: Json) -> None:
    assert failure_of(error) == failure
