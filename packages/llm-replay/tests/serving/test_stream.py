import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from replay_kit import Request, collect, serving, text_call, texts

from llm_replay.chunks import Chunk
from llm_replay.exceptions import OverrideError, RecordedFailureError, TwoStreamsError
from llm_replay.rounds import fail, hang, raw, say
from llm_replay.stream import BURST


def test_unknown_chunks_and_fields_are_served_as_they_are() -> None:
    odd: Any = [{"type": "x-new", "deep": {"a": [1, None, "{"]}}, {"type": "finish", "more": 2**53}]

    assert asyncio.run(collect(serving(raw(odd)).stream(Request()))) == odd


@pytest.mark.parametrize("count", [0, 1, 2, BURST, BURST + 1, 3 * BURST + 1])
def test_every_chunk_is_served_once_whatever_their_number(count: int) -> None:
    chunks: list[Chunk] = [
        {"type": "text-delta", "index": 0, "text": str(number)} for number in range(count)
    ]

    assert asyncio.run(collect(serving(raw(chunks)).stream(Request()))) == chunks


def test_a_throw_raises_the_recorded_failure_after_its_prefix() -> None:
    async def run() -> None:
        async for chunk in model.stream(Request()):
            seen.append(chunk)  # noqa: PERF401  a failure leaves what came before it

    model = serving(fail("RATE_LIMIT", "slow down", after=say("par", ended=False)))
    seen: list[Chunk] = []
    with pytest.raises(RecordedFailureError) as caught:
        asyncio.run(run())

    assert (caught.value.code, caught.value.message) == ("RATE_LIMIT", "slow down")
    assert str(caught.value) == "RATE_LIMIT: slow down"
    assert texts(seen) == ["par"]


def test_a_hang_without_chunks_serves_the_two_fixed_ones_then_makes_its_file(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        seen.append(await anext(stream))
        seen.append(await anext(stream))
        before = ready.exists()
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        assert (before, ready.exists(), waiting.done()) == (False, True, False)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    ready = tmp_path / "deep" / "ready"
    model = serving({"kind": "hang", "readyFile": str(ready)})
    seen: list[Chunk] = []
    asyncio.run(run())

    assert seen == [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": "partial"},
    ]


def test_a_ready_file_that_can_not_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ready = tmp_path / "file" / "deep" / "ready"
    model = serving({"kind": "hang", "readyFile": str(ready), "chunks": []})

    with pytest.raises(OverrideError) as caught:
        asyncio.run(collect(model.stream(Request())))
    assert str(caught.value) == (
        f"{ready}: 1 problem\n"
        "  readyFile: can't be created: Not a directory\n"
        "  hint: an override is a list of entries, or patches for single calls; see the README"
    )
    with pytest.raises(OverrideError):
        model.assert_consumed()


def test_a_ready_file_whose_name_no_file_can_have_says_so() -> None:
    model = serving({"kind": "hang", "readyFile": "a\0b", "chunks": []})

    with pytest.raises(OverrideError, match=r"readyFile: can't be created: .*embedded null"):
        asyncio.run(collect(model.stream(Request())))


def test_a_hang_with_its_own_chunks_serves_exactly_those() -> None:
    async def run() -> None:
        async for chunk in model.stream(Request()):
            seen.append(chunk)
            if len(seen) == 2:
                task = asyncio.current_task()
                assert task
                asyncio.get_running_loop().call_soon(task.cancel)

    model = serving(hang(after=say("so far", ended=False)))
    seen: list[Chunk] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())

    assert texts(seen) == ["so far"]
    assert len(seen) == 2


@pytest.mark.parametrize("at", [0, 1, 2, BURST - 1, BURST, BURST + 1, 3 * BURST])
@pytest.mark.parametrize("pace", [None, 0.0])
def test_a_cancellation_lands_within_one_chunk(at: int, pace: float | None) -> None:
    async def run() -> None:
        task = asyncio.current_task()
        assert task
        if at == 0:
            task.cancel()
        async for _ in model.stream(Request()):
            seen.append(1)
            if len(seen) == at:
                task.cancel()

    chunks: list[Chunk] = [{"type": "text-delta", "index": 0, "text": "x"}] * (3 * BURST)
    model = serving(raw(chunks), pace=None if pace is None else lambda *_: lambda _: pace)
    seen: list[int] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())

    assert len(seen) == at


def test_a_cancellation_interrupts_a_pause() -> None:
    async def run() -> None:
        stream = model.stream(Request())
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    model = serving(say("x"), pace=lambda *_: lambda _: 3600.0)
    asyncio.run(asyncio.wait_for(run(), 10))


def test_a_cancellation_interrupts_a_search_for_a_placeholder() -> None:
    async def run() -> None:
        slow = "{{fromRequest:(?:a|a|a)*[bc]}}"
        model = serving(say(slow))
        request = Request(messages=[{"text": "a" * 40}])
        task = asyncio.ensure_future(collect(model.stream(request)))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_stream_may_be_read_where_there_is_no_task() -> None:
    async def run() -> Chunk:
        def read() -> None:
            step = anext(stream).__await__()
            try:
                while True:
                    next(step)
            except StopIteration as done:
                read_chunk.set_result(done.value)

        loop = asyncio.get_running_loop()
        read_chunk: asyncio.Future[Chunk] = loop.create_future()
        loop.call_soon(read)
        return await read_chunk

    stream = serving(say("x")).stream(Request())
    assert asyncio.run(run())["type"] == "block-start"


def test_a_consumer_that_swallowed_a_cancellation_earlier_is_still_served() -> None:
    async def run() -> list[Chunk]:
        task = asyncio.current_task()
        assert task
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return await collect(model.stream(Request()))

    model = serving(say("hello", split=3))
    assert texts(asyncio.run(run())) == ["he", "ll", "o"]


def test_a_burst_of_ten_thousand_chunks_lets_others_run() -> None:
    async def run() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(count())
        await collect(model.stream(Request()))
        other.cancel()
        return turns

    model = serving(raw(text_call(*["x"] * 10_000)))
    assert asyncio.run(run()) >= 10_000 // BURST


def test_several_sessions_stream_at_once() -> None:
    async def run() -> list[list[str]]:
        one, two = model.stream(Request(session_id="a")), model.stream(Request(session_id="b"))
        seen: list[list[str]] = [[], []]
        for _ in range(4):
            seen[0] += texts([await anext(one)])
            seen[1] += texts([await anext(two)])
        return seen

    model = serving(say("abcd", split=4), children=[[say("efgh", split=4)]])
    assert asyncio.run(run()) == [["a", "b", "c"], ["e", "f", "g"]]


def test_a_second_open_stream_of_a_session_is_a_fault_and_the_first_goes_on() -> None:
    async def run() -> list[Chunk]:
        one, two = model.stream(Request()), model.stream(Request())
        seen = [await anext(one)]
        with pytest.raises(TwoStreamsError, match="model call 2 was asked for while another"):
            await anext(two)
        return seen + [chunk async for chunk in one]

    model = serving(say("first"), say("second"))
    assert texts(asyncio.run(run())) == ["first"]
    with pytest.raises(TwoStreamsError):
        model.assert_consumed()


def test_a_stream_that_was_closed_is_not_open_any_more() -> None:
    async def run() -> list[Chunk]:
        one, two = model.stream(Request()), model.stream(Request())
        await anext(one)
        await one.aclose()
        return await collect(two)

    model = serving(say("first"), say("second"))
    assert texts(asyncio.run(run())) == ["second"]


def test_streams_may_be_asked_for_in_advance_and_read_later() -> None:
    async def run() -> list[str]:
        one, two = model.stream(Request()), model.stream(Request())
        return texts(await collect(two)) + texts(await collect(one))

    model = serving(say("first"), say("second"))
    assert asyncio.run(run()) == ["second", "first"]
    model.assert_consumed()
