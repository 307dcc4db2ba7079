"""Frames go out whole and one after the other, whatever becomes of whoever sends them."""

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from acp_example.stdio import StdioTransport

Work = Callable[[StdioTransport], Awaitable[None]]


def written(work: Work, *, blocking: bool = True) -> list[Any]:
    """Let a transport send over a pipe, and return the frames that came out of it."""
    source, feed = os.pipe()
    drain, target = os.pipe()
    os.set_blocking(target, blocking)
    output = bytearray()

    def read() -> None:
        while data := os.read(drain, 65_536):
            output.extend(data)

    async def run() -> None:
        async def nothing() -> None:
            pass

        await work(StdioTransport(source, target, ended=nothing, heeds=lambda _message: True))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        asyncio.run(run())
    finally:
        os.close(feed)
        os.close(target)
        reader.join()
        os.close(drain)
    return [json.loads(line) for line in output.splitlines()]


def test_frame_whose_sender_is_cancelled_is_not_torn_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = threading.Event(), threading.Event()
    write = os.write

    def slow(target: int, data: bytes) -> int:
        """Write the start of a large frame, and wait before the rest of it."""
        if len(data) == LARGE:
            done = write(target, data[:10])
            begun.set()
            go.wait()
            return done
        return write(target, data)

    frame = {"n": 0, "text": "x" * 10_000}
    LARGE = len(json.dumps(frame, separators=(",", ":"))) + 1  # noqa: N806  as a constant
    monkeypatch.setattr(os, "write", slow)

    async def work(transport: StdioTransport) -> None:
        large = asyncio.create_task(transport.send(frame))
        await asyncio.to_thread(begun.wait)
        large.cancel()
        await asyncio.wait({large})
        small = asyncio.create_task(transport.send({"n": 1}))
        for _ in range(10):
            await asyncio.sleep(0)
        go.set()
        await small

    assert [frame["n"] for frame in written(work)] == [0, 1]


def test_frames_go_whole_through_a_pipe_that_does_not_block() -> None:
    sizes = [500_000, 1, 500_000, 2000, 500_000]

    async def work(transport: StdioTransport) -> None:
        for number, size in enumerate(sizes):
            await transport.send({"n": number, "text": "x" * size})

    frames = written(work, blocking=False)

    assert [len(frame["text"]) for frame in frames] == sizes


def test_frame_of_which_a_pipe_takes_a_part_goes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    write, full = os.write, iter([True])

    def partial(target: int, data: bytes) -> int:
        """Take nothing at first, then three bytes at a time."""
        if next(full, False):
            raise BlockingIOError
        return write(target, data[:3])

    monkeypatch.setattr(os, "write", partial)

    async def work(transport: StdioTransport) -> None:
        for number in range(3):
            await transport.send({"n": number})

    assert [frame["n"] for frame in written(work)] == [0, 1, 2]


def test_input_that_does_not_block_is_waited_for() -> None:
    source, feed = os.pipe()
    drain, target = os.pipe()
    os.set_blocking(source, False)

    async def run() -> object:
        async def nothing() -> None:
            pass

        transport = StdioTransport(source, target, ended=nothing, heeds=lambda _message: True)
        receiving = asyncio.create_task(transport.receive())
        await asyncio.sleep(0)
        os.write(feed, b'{"n": 1}\n')
        return await receiving

    try:
        assert asyncio.run(run()) == {"n": 1}
    finally:
        for end in (feed, drain, target, source):
            os.close(end)
