import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from acp_example.stdio import StdioTransport

Work = Callable[[StdioTransport, int], Awaitable[None]]


def heeded(message: Mapping[str, Any]) -> bool:
    return bool(message["method"] == "told")


def over_pipes(
    work: Work, incoming: bytes = b"", *, ended: Callable[[], Awaitable[None]] | None = None
) -> bytes:
    """Run a transport over two pipes and return what it wrote."""
    source, feed = os.pipe()
    drain, target = os.pipe()
    written = bytearray()

    def read() -> None:
        while data := os.read(drain, 65_536):
            written.extend(data)

    async def run() -> None:
        async def nothing() -> None:
            pass

        transport = StdioTransport(source, target, ended=ended or nothing, heeds=heeded)
        os.write(feed, incoming)
        await work(transport, feed)
        await transport.close()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        asyncio.run(run())
    finally:
        os.close(target)
        reader.join()
        for end in (source, drain):
            os.close(end)
    return bytes(written)


async def read_all(transport: StdioTransport, feed: int) -> list[Any]:
    """Close the input and return every message."""
    os.close(feed)
    messages = []
    while (message := await transport.receive()) is not None:
        messages.append(message)
        if "id" in message:
            await transport.send({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    return messages


def received(incoming: bytes) -> tuple[list[Any], list[Any]]:
    """Return the messages that bytes make, and what was answered at once."""
    messages: list[Any] = []

    async def work(transport: StdioTransport, feed: int) -> None:
        messages.extend(await read_all(transport, feed))

    written = over_pipes(work, incoming)
    return messages, [json.loads(line) for line in written.splitlines()]


def test_lines_become_messages_and_blank_ones_nothing() -> None:
    messages, _ = received(b'{"a":1}\n\n  \r\n{"b":"\xc3\xa9"}\n')

    assert messages == [{"a": 1}, {"b": "é"}]


def test_last_line_needs_no_end() -> None:
    assert received(b'{"a":1}')[0] == [{"a": 1}]


def test_half_a_surrogate_pair_is_json() -> None:
    assert received(b'{"a":"\\ud83d"}\n')[0] == [{"a": "\ud83d"}]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (b"garbage", -32700, "Parse error: a frame is one JSON object on one line"),
        (b"[" * 100_000, -32700, "Parse error: a frame is one JSON object on one line"),
        (b"[1]", -32600, "Invalid request: a frame is one JSON object on one line"),
        (b"7", -32600, "Invalid request: a frame is one JSON object on one line"),
    ],
)
def test_line_that_is_no_message_is_answered_and_what_follows_is_read(
    line: bytes, code: int, message: str
) -> None:
    messages, answers = received(line + b'\n{"a":1}\n')

    assert messages == [{"a": 1}]
    assert answers == [{"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}]


def test_end_of_input_is_told_when_every_request_has_its_answer() -> None:
    order: list[str] = []
    told = asyncio.Event()

    async def ended() -> None:
        order.append("ended")
        told.set()

    async def work(transport: StdioTransport, feed: int) -> None:
        os.close(feed)
        request = await transport.receive()
        assert request is not None

        async def answer() -> None:
            await told.wait()
            order.append("answered")
            await transport.send({"jsonrpc": "2.0", "id": request["id"], "result": {}})

        answering = asyncio.create_task(answer())
        assert await transport.receive() is None
        order.append("over")
        await answering

    over_pipes(work, b'{"id":1,"method":"m"}\n', ended=ended)

    assert order == ["ended", "answered", "over"]


def test_frame_of_ten_megabytes_comes_in_and_goes_out_whole() -> None:
    text = "x" * 10_000_000

    async def work(transport: StdioTransport, feed: int) -> None:
        def write() -> None:
            frame = b'{"text":"' + text.encode() + b'"}\n'
            while frame:
                frame = frame[os.write(feed, frame[:50_000]) :]
            os.close(feed)

        writer = threading.Thread(target=write)
        writer.start()
        message = await transport.receive()
        writer.join()
        assert message is not None
        await transport.send(message)

    written = over_pipes(work)

    assert json.loads(written)["text"] == text


def test_messages_keep_the_order_in_which_they_were_sent() -> None:
    sizes = [10, 100_000, 10, 300_000, 10]

    async def work(transport: StdioTransport, feed: int) -> None:
        os.close(feed)
        await asyncio.gather(
            *[transport.send({"n": n, "text": "x" * size}) for n, size in enumerate(sizes)]
        )

    lines = over_pipes(work).splitlines()

    assert [json.loads(line)["n"] for line in lines] == [0, 1, 2, 3, 4]


def test_what_json_cannot_say_is_said_as_text() -> None:
    async def work(transport: StdioTransport, feed: int) -> None:
        os.close(feed)
        await transport.send({"error": {"data": ValueError("odd")}})
        await transport.send({"text": "\ud83d", "error": ValueError("odd")})

    first, second = over_pipes(work).splitlines()

    assert json.loads(first) == {"error": {"data": "odd"}}
    assert json.loads(second)["text"] == "\ud83d"


def test_input_that_comes_after_the_loop_has_ended_is_nobodys() -> None:
    source, feed = os.pipe()

    async def run() -> None:
        async def nothing() -> None:
            pass

        StdioTransport(source, feed, ended=nothing, heeds=heeded)

    before = set(threading.enumerate())
    asyncio.run(run())
    (reader,) = set(threading.enumerate()) - before
    os.write(feed, b'{"late":1}\n')
    reader.join()  # What it raised would fail this test.

    os.close(source)
    os.close(feed)


def test_client_that_is_gone_is_written_to_no_more() -> None:
    async def run() -> None:
        source, feed = os.pipe()
        drain, target = os.pipe()

        async def nothing() -> None:
            pass

        transport = StdioTransport(source, target, ended=nothing, heeds=heeded)
        os.write(feed, b'{"id":1,"method":"m"}\n')
        await transport.receive()
        os.close(drain)
        await transport.send({"id": 2, "method": "n"})
        await transport.send({"id": 3, "method": "n"})
        os.close(feed)
        assert await transport.receive() is None
        os.close(source)
        os.close(target)

    asyncio.run(run())


def test_client_that_closes_its_end_and_reads_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("acp_example.stdio.PATIENCE_S", 0.01)

    async def run() -> None:
        source, feed = os.pipe()
        drain, target = os.pipe()

        async def nothing() -> None:
            pass

        transport = StdioTransport(source, target, ended=nothing, heeds=heeded)
        os.write(feed, b'{"id":1,"method":"m"}\n')
        os.close(feed)
        await transport.receive()
        answer = asyncio.create_task(transport.send({"id": 1, "result": "x" * 1_000_000}))

        assert await transport.receive() is None

        os.close(drain)
        await answer
        os.close(source)
        os.close(target)

    asyncio.run(run())


def test_input_that_breaks_is_an_input_that_ends() -> None:
    async def run() -> None:
        async def nothing() -> None:
            pass

        directory = os.open(".", os.O_RDONLY)
        _, target = os.pipe()
        transport = StdioTransport(directory, target, ended=nothing, heeds=heeded)
        assert await transport.receive() is None

    asyncio.run(run())


def test_stdout_carries_frames_and_nothing_else() -> None:
    code = (
        "import os, sys, warnings\n"
        "from acp_example.stdio import claim_stdout\n"
        "frames = claim_stdout()\n"
        "print('printed')\n"
        "os.write(1, b'written\\n')\n"
        "os.system('echo from a child')\n"
        "warnings.warn('careful')\n"
        "os.write(frames, b'{}\\n')\n"
    )

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  our own code

    assert done.stdout == "{}\n"
    for noise in ("printed", "written", "from a child", "careful"):
        assert noise in done.stderr


def test_notification_that_the_agent_does_not_know_is_dropped() -> None:
    seen: list[Any] = []

    async def work(transport: StdioTransport, feed: int) -> None:
        seen.extend(await read_all(transport, feed))

    unknown = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}\n'
    over_pipes(work, unknown + b'{"jsonrpc":"2.0","method":"told"}\n')

    assert [message["method"] for message in seen] == ["told"]


def test_meta_of_a_frame_takes_no_parameters_place() -> None:
    seen: list[Any] = []

    async def work(transport: StdioTransport, feed: int) -> None:
        seen.extend(await read_all(transport, feed))

    over_pipes(work, b'{"id":1,"method":"m","params":{"cwd":"/","_meta":{"cwd":"/etc"}}}\n')

    assert seen == [{"id": 1, "method": "m", "params": {"cwd": "/"}}]
