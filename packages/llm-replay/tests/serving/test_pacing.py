import asyncio
from pathlib import Path
from typing import Any

import pytest
from replay_kit import Request, Runtime, collect, install, text_call, texts, write_log

from llm_replay.chunks import Chunk


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every pause that was asked for, none of which is made."""
    asked: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        asked.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    return asked


def served(runtime: Runtime) -> list[Chunk]:
    return asyncio.run(collect(runtime.stream(Request())))


def install_and_read(runtime: Runtime, pauses: list[float], log: Path, **config: Any) -> int:  # noqa: ANN401  as ReplayConfig takes them
    install(runtime, log, **config)
    count = len(served(runtime))
    del pauses[-1]  # the turn for others at the end
    return count


def test_each_chunk_waits_for_a_fixed_time(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call("a", "b"))

    assert install_and_read(runtime, pauses, log, pace_ms=250) == 3
    assert pauses == [0.25, 0.25, 0.25]


def test_a_pace_of_nothing_is_no_pace(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call(*"abcdef"))

    install_and_read(runtime, pauses, log, pace_ms=0)
    assert set(pauses) == {0}
    assert len(pauses) < 6


def test_a_recorded_pace_waits_as_long_as_the_recording_did(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    times = [1000, 1400, 1450, 1440, 1500]
    log = write_log(tmp_path / "s.jsonl", text_call("a", "b", "c"), times=times)

    install_and_read(runtime, pauses, log, pace="recorded")
    assert pauses == [0.4, 0.05, 0, 0.06]


def test_a_log_without_times_has_no_pace_to_follow(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call("a", "b"))

    install_and_read(runtime, pauses, log, pace="recorded")
    assert pauses == [0, 0, 0]


def test_without_an_announcement_the_first_chunk_comes_at_once(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call("a"), times=[0, 500, 700])
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if b"llm/call" not in line))

    install_and_read(runtime, pauses, log, pace="recorded")
    assert pauses == [0, 0.2]


def test_hand_written_calls_and_times_that_are_no_numbers_do_not_wait(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call("a"), times=[0, 10, 20])
    log.write_bytes(log.read_bytes().replace(b'"time":10', b'"time":null'))
    override = tmp_path / "o.json"
    override.write_text('{"patches": [{"at": 1, "entry": {"kind": "chunks", "chunks": []}}]}')
    install(runtime, log, override_file=override, pace="recorded")

    assert (len(served(runtime)), len(served(runtime))) == (2, 0)
    assert pauses[:2] == [0, 0.02]


def test_a_call_patched_with_more_chunks_than_were_recorded_waits_for_those_alone(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call(), times=[0, 10])
    override = tmp_path / "o.json"
    override.write_text('{"patches": [{"at": 0, "entry": {"kind": "hang"}}]}')
    install(runtime, log, override_file=override, pace="recorded")

    async def run() -> None:
        stream = runtime.stream(Request())
        await anext(stream)
        await anext(stream)
        await stream.aclose()

    asyncio.run(run())
    assert pauses == [0.01, 0.0]


def test_a_call_that_was_cut_before_its_first_chunk_has_nothing_to_wait_for(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    async def run() -> None:
        waiting = asyncio.ensure_future(collect(runtime.stream(Request())))
        await asyncio.wait({waiting}, timeout=0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    install(runtime, write_log(tmp_path / "s.jsonl", [], times=[70]), pace="recorded")
    asyncio.run(run())
    assert pauses == []


def test_a_log_that_is_replaced_need_not_be_there(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    override = tmp_path / "o.json"
    override.write_text('[{"kind": "chunks", "chunks": []}]')
    install(runtime, tmp_path / "gone.jsonl", override_file=override, pace="recorded")

    assert served(runtime) == []
    assert pauses == [0]


def test_inherited_events_of_a_child_are_not_its_calls(
    runtime: Runtime, tmp_path: Path, pauses: list[float]
) -> None:
    parent = write_log(tmp_path / "s.jsonl", text_call("p"))
    calls = (text_call("p"), text_call("c"))
    times = [0, 1, 2, 1000, 1030, 1070]
    child = write_log(tmp_path / "s.1.jsonl", *calls, times=times, seedLength=3)
    install(runtime, parent, child, pace="recorded")
    served(runtime)
    pauses.clear()

    assert texts(asyncio.run(collect(runtime.stream(Request(session_id="child"))))) == ["c"]
    assert pauses == [0.03, 0.04, 0]
