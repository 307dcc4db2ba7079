"""Frames over stdin and stdout: one JSON object a line, and nothing else on stdout."""

import asyncio
import fcntl
import json
import os
import select
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

import orjson

_ATOMIC: Final = 4096  # What a pipe that polls as writable takes without blocking.
_CHUNK: Final = 65_536
PATIENCE_S: Final = 5.0
"""How long a client that has closed its end may take to read what is left for it."""
REQUESTED: Final[ContextVar[list[object]]] = ContextVar("requested")
"""Where the ids of requests are noted that a task sends, since the SDK does not tell them."""


def claim_stdout() -> int:
    """Keep the real stdout for frames; whatever else is printed goes to stderr from now on.

    Should stderr be closed, what is printed goes nowhere: a number that is free would be given
    to the next file, and that is the real stdout.
    """
    try:
        os.fstat(2)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != 2:  # noqa: PLR2004  stderr, by its number
            os.dup2(null, 2)
            os.close(null)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  it stays open
    frames = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return frames


class StdioTransport:
    """Moves JSON-RPC messages over two file descriptors of any kind.

    `ended` runs when the input is over, before anybody is told: what still runs can then finish
    and say so. Every request that was read gets its answer out before the end is reported.
    Notifications that the agent does not heed are dropped, and the `_meta` of what comes in with
    them: the SDK would let its keys take the place of parameters.
    """

    def __init__(
        self,
        source: int,
        target: int,
        *,
        ended: Callable[[], Awaitable[None]],
        heeds: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._source = source
        self._target = target
        self._ended = ended
        self._heeds = heeds
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lock = asyncio.Lock()
        self._gone = False
        self._unanswered: set[object] = set()
        self._answered = asyncio.Event()
        # Not the loop's own threads: nobody may wait for a write that never ends.
        self._writer = ThreadPoolExecutor(1, "stdout")
        self._writing: Future[None] | None = None
        self._poll = select.poll()
        self._poll.register(target, select.POLLOUT)
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end. What is no message is answered here."""
        while (line := await self._lines.get()) is not None:
            if not line.strip():
                continue
            message = _decoded(line)
            if isinstance(message, dict):
                if "method" in message:
                    if "id" in message:
                        self._unanswered.add(_key(message["id"]))
                    elif not self._heeds(message):
                        continue
                    if isinstance(message.get("params"), dict):
                        message["params"].pop("_meta", None)
                return message
            code, text = (-32700, "Parse error") if message is None else (-32600, "Invalid request")
            error = {"code": code, "message": f"{text}: a frame is one JSON object on one line"}
            await self.send({"jsonrpc": "2.0", "id": None, "error": error})
        await self._ended()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._all_answered()
        self._gone = True
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. Messages keep the order in which this was called."""
        data = _encoded(message)
        if "method" in message and "id" in message and (ids := REQUESTED.get(None)) is not None:
            ids.append(message["id"])
        async with self._lock:
            await self._write(data)
        if "method" not in message:
            self._unanswered.discard(_key(message.get("id")))
            self._answered.set()

    def end(self) -> None:
        """Take the input as over, whatever still comes."""
        self._lines.put_nowait(None)

    async def close(self) -> None:
        """Nothing to do: the descriptors belong to the process."""

    async def _all_answered(self) -> None:
        while self._unanswered and not self._gone:
            self._answered.clear()
            await self._answered.wait()

    async def _write(self, data: bytes) -> None:
        if self._gone:
            return
        try:
            # A write goes on although its sender was cancelled; what comes next goes after it.
            idle = self._writing is None or self._writing.done()
            if idle and len(data) <= _ATOMIC and self._poll.poll(0):
                with suppress(BlockingIOError):
                    data = data[os.write(self._target, data) :]
            if data:
                self._writing = self._writer.submit(self._write_all, data)
                await asyncio.wrap_future(self._writing)
        except OSError:
            # The client is gone. Its end of stdin comes too, and ends the process.
            self._gone = True
            self._answered.set()

    def _write_all(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._target, data) :]
            except BlockingIOError:  # Whoever shares the descriptor made it so.
                select.select([], [self._target], [])

    def _read(self) -> None:
        """Cut the input into lines, on a thread: this works for pipes, files and terminals."""
        rest = bytearray()
        while True:
            try:
                data = os.read(self._source, _CHUNK)
            except BlockingIOError:  # As above.
                select.select([self._source], [], [])
                continue
            except OSError:
                data = b""
            rest += data
            lines: list[bytes] = []
            if b"\n" in data or not data:
                *lines, last = bytes(rest).split(b"\n")
                lines += [] if data else [last]
                rest = bytearray(last)
            try:
                self._loop.call_soon_threadsafe(self._take, lines, not data)
            except RuntimeError:
                return  # The loop is closed: nobody waits for input any more.
            if not data:
                return

    def _take(self, lines: list[bytes], end: bool) -> None:  # noqa: FBT001  called by position
        for line in lines:
            self._lines.put_nowait(line)
        if end:
            self._lines.put_nowait(None)


def _decoded(line: bytes) -> object:
    """Return a line's value; None where it is not JSON."""
    try:
        return orjson.loads(line)
    except ValueError:
        pass
    try:
        # Half a surrogate pair is refused by orjson, and is JSON nevertheless.
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _encoded(message: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(message, default=str, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return json.dumps(message, default=str, separators=(",", ":")).encode() + b"\n"


def _key(request_id: object) -> str:
    return json.dumps(request_id)
