import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from replay_kit import Request, collect, serving, told

from llm_replay.exceptions import OverrideError, RecordedFailureError, ReplayExhaustedError
from llm_replay.rounds import fail, hang, raw, say
from llm_replay.verdict import VerdictWriter


def test_a_call_is_told_before_the_handler_returns_and_served_with_its_last_chunk(
    verdict_dir: Path,
) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        seen.append(told(verdict_dir))
        for _ in range(3):
            await anext(stream)
        seen.append(told(verdict_dir))
        await anext(stream)
        seen.append(told(verdict_dir))
        await stream.aclose()

    model = serving(say("x"), verdict=verdict_dir)
    seen: list[list[str]] = []
    asyncio.run(run())

    asked = ["bound 0 live", "call 0.1"]
    assert seen == [asked, asked, [*asked, "served 0.1"]]
    assert told(verdict_dir) == [*asked, "served 0.1"]


def test_a_consumer_that_closes_the_stream_was_served(verdict_dir: Path) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        await anext(stream)
        await stream.aclose()

    model = serving(say("x"), verdict=verdict_dir)
    asyncio.run(run())

    assert told(verdict_dir) == ["bound 0 live", "call 0.1", "served 0.1"]


def test_a_consumer_that_closes_a_stream_it_never_read_was_served(verdict_dir: Path) -> None:
    async def run() -> None:
        await model.stream(Request()).aclose()

    model = serving(say("x"), verdict=verdict_dir)
    asyncio.run(run())

    assert told(verdict_dir)[1:] == ["call 0.1", "served 0.1"]


def test_a_consumer_that_drops_a_stream_half_read_was_served(verdict_dir: Path) -> None:
    async def run() -> None:
        async for _ in model.stream(Request()):
            break

    model = serving(say("x"), verdict=verdict_dir)
    asyncio.run(run())

    assert told(verdict_dir)[1:] == ["call 0.1", "served 0.1"]


def test_a_stream_that_was_never_started_is_told_when_replay_is_taken_out(
    verdict_dir: Path,
) -> None:
    model = serving(say("x"), say("y"), verdict=verdict_dir)
    kept = [model.stream(Request()), model.stream(Request())]
    before = told(verdict_dir)
    model.close()

    assert kept
    assert before == ["bound 0 live", "call 0.1", "call 0.2"]
    assert sorted(told(verdict_dir)[3:]) == ["served 0.1", "served 0.2"]


def test_a_stream_that_is_open_when_replay_is_taken_out_still_tells(verdict_dir: Path) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        await anext(stream)
        model.close()
        seen.append(told(verdict_dir))
        await collect(stream)

    model = serving(say("x"), verdict=verdict_dir)
    seen: list[list[str]] = []
    asyncio.run(run())

    assert seen == [["bound 0 live", "call 0.1"]]
    assert told(verdict_dir)[2:] == ["served 0.1"]


def test_a_throw_is_served_when_it_is_raised(verdict_dir: Path) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        for _ in range(3):
            await anext(stream)
        seen.append(told(verdict_dir))
        with pytest.raises(RecordedFailureError):
            await anext(stream)

    model = serving(fail("SERVER", after=say("x")), verdict=verdict_dir)
    seen: list[list[str]] = []
    asyncio.run(run())

    assert seen == [["bound 0 live", "call 0.1"]]
    assert told(verdict_dir)[2:] == ["served 0.1"]


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_hang_is_told_when_the_chunk_after_its_last_is_asked_for(
    verdict_dir: Path, chunks: int
) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        for _ in range(chunks):
            await anext(stream)
        seen.append(told(verdict_dir))
        waiting = asyncio.ensure_future(anext(stream))
        await some_turns()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    prefix = [{"type": "text-delta", "index": 0, "text": "x"}] * chunks
    model = serving({"kind": "hang", "chunks": prefix}, verdict=verdict_dir)
    seen: list[list[str]] = []
    asyncio.run(run())

    assert seen == [["bound 0 live", "call 0.1"]]
    assert told(verdict_dir)[2:] == ["hanging 0.1", "served 0.1"]


def test_who_sees_the_ready_file_finds_the_hang_told(
    verdict_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        waiting = asyncio.ensure_future(anext(model.stream(Request())))
        await some_turns()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    def hanging(writer: VerdictWriter, script: int, call: int) -> None:
        seen.append(ready.exists())
        tell(writer, script, call)
        seen.append(ready.exists())

    seen: list[bool] = []
    ready = tmp_path / "new" / "ready"
    tell = VerdictWriter.hanging
    monkeypatch.setattr(VerdictWriter, "hanging", hanging)
    entry = {"kind": "hang", "chunks": [], "readyFile": str(ready)}
    model = serving(entry, verdict=verdict_dir)
    asyncio.run(run())

    assert (seen, list(ready.parent.iterdir())) == ([False, False], [ready])
    assert told(verdict_dir)[:3] == ["bound 0 live", "call 0.1", "hanging 0.1"]


def test_a_hang_whose_ready_file_is_there_already_leaves_what_is_in_it(
    verdict_dir: Path, tmp_path: Path
) -> None:
    async def run() -> None:
        waiting = asyncio.ensure_future(anext(model.stream(Request())))
        await some_turns()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    ready = tmp_path / "ready"
    ready.write_text("theirs")
    os.utime(ready, (1, 1))
    entry = {"kind": "hang", "chunks": [], "readyFile": str(ready)}
    model = serving(entry, verdict=verdict_dir)
    asyncio.run(run())

    assert (ready.read_text(), ready.stat().st_mtime > 1) == ("theirs", True)
    assert told(verdict_dir)[2:] == ["hanging 0.1", "served 0.1"]


def test_a_hang_whose_ready_file_can_not_be_made_is_told_neither_to_hang_nor_to_be_served(
    verdict_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    entry = {"kind": "hang", "chunks": [], "readyFile": str(tmp_path / "file" / "deep" / "ready")}
    model = serving(entry, verdict=verdict_dir)

    with pytest.raises(OverrideError, match="readyFile: can't be created: Not a directory"):
        asyncio.run(collect(model.stream(Request())))
    model.close()
    assert told(verdict_dir) == ["bound 0 live", "call 0.1"]


def test_a_ready_file_whose_name_is_taken_while_the_hang_is_told_says_so(
    verdict_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    monkeypatch.setattr(VerdictWriter, "hanging", lambda *_: ready.mkdir())
    model = serving({"kind": "hang", "chunks": [], "readyFile": str(ready)}, verdict=verdict_dir)

    with pytest.raises(OverrideError, match="readyFile: can't be created: Is a directory"):
        asyncio.run(collect(model.stream(Request())))


def test_a_hang_that_is_closed_before_it_hangs_is_served(verdict_dir: Path) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        await anext(stream)
        await stream.aclose()

    model = serving(hang(after=say("x")), verdict=verdict_dir)
    asyncio.run(run())

    assert told(verdict_dir)[2:] == ["served 0.1"]


def test_a_call_without_chunks_is_served_when_it_is_read(verdict_dir: Path) -> None:
    model = serving(raw([]), verdict=verdict_dir)
    assert asyncio.run(collect(model.stream(Request()))) == []

    assert told(verdict_dir)[2:] == ["served 0.1"]


def test_a_call_that_is_cancelled_half_way_was_served(verdict_dir: Path) -> None:
    async def run() -> None:
        stream = model.stream(Request())
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting

    pauses = [0.0, 3600.0]
    model = serving(say("x"), verdict=verdict_dir, pace=lambda *_: pauses.__getitem__)
    asyncio.run(run())

    assert told(verdict_dir)[2:] == ["served 0.1"]


def test_a_fault_is_told_when_the_stream_is_asked_for(verdict_dir: Path) -> None:
    model = serving(verdict=verdict_dir)
    stream = model.stream(Request(session_id=None))
    before = told(verdict_dir)

    with pytest.raises(ReplayExhaustedError):
        asyncio.run(collect(stream))
    assert before == told(verdict_dir) == ["bound 0 None", "fault exhausted 0.1"]


def test_every_call_too_many_is_told(verdict_dir: Path) -> None:
    model = serving(verdict=verdict_dir)
    for _ in range(3):
        model.stream(Request(session_id=None))

    assert told(verdict_dir)[1:] == ["fault exhausted 0.1"] * 3


def test_an_unknown_session_is_told_without_a_script(verdict_dir: Path) -> None:
    model = serving(say("x"), verdict=verdict_dir)
    kept = [model.stream(Request(session_id=name)) for name in "ab"]

    assert kept
    assert told(verdict_dir)[2:] == ["fault unknown-session"]


def test_two_open_streams_are_told_and_the_second_is_no_service(verdict_dir: Path) -> None:
    async def run() -> None:
        one, two = model.stream(Request()), model.stream(Request())
        await anext(one)
        with contextlib.suppress(Exception):
            await anext(two)
        await one.aclose()

    model = serving(say("x"), say("y"), verdict=verdict_dir)
    asyncio.run(run())

    facts = ["bound 0 live", "call 0.1", "call 0.2", "fault two-streams 0.2", "served 0.1"]
    assert told(verdict_dir) == facts
