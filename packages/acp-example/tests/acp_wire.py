"""A client at the other end of two pipes: raw frames out, every frame that comes back checked."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from acp.schema import (
    CancelRequestNotification,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestPermissionRequest,
    SessionNotification,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)
from loop_bench import Bench, Json

from acp_example.server import serve
from acp_example.sessions import Sessions

RESULTS: dict[str, Any] = {
    "initialize": InitializeResponse,
    "session/new": NewSessionResponse,
    "session/load": LoadSessionResponse,
    "session/list": ListSessionsResponse,
    "session/prompt": PromptResponse,
    "session/set_mode": SetSessionModeResponse,
    "session/set_config_option": SetSessionConfigOptionResponse,
}
REQUESTS: dict[str, Any] = {
    "session/update": SessionNotification,
    "session/request_permission": RequestPermissionRequest,
    "$/cancel_request": CancelRequestNotification,
}


def check_frame(frame: Json, methods: dict[Any, str]) -> None:
    """Check a frame of the agent against the protocol's own models; unknown keys count too."""
    assert frame["jsonrpc"] == "2.0"
    if "method" in frame:
        REQUESTS[frame["method"]].model_validate(frame["params"], extra="forbid")
    elif "result" in frame:
        RESULTS[methods[frame["id"]]].model_validate(frame["result"], extra="forbid")


class Wire:
    """The client's end of a connection to an agent in this process."""

    def __init__(self, agent: Bench) -> None:
        self.agent = agent
        self.frames: list[Json] = []
        self.answer: Callable[[Json], Json] | None = None
        self._methods: dict[Any, str] = {}
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}

    def run(self, work: Callable[["Wire"], Coroutine[Any, Any, None]]) -> None:
        """Serve, let the client work, close its end, and wait for the agent's."""
        asyncio.run(self._run(work))

    async def _run(self, work: Callable[["Wire"], Awaitable[None]]) -> None:
        source, self._feed = os.pipe()
        drain, target = os.pipe()
        sessions = Sessions(self.agent.host)
        self.agent.sessions = sessions
        serving = asyncio.create_task(serve(sessions, source=source, target=target))
        reader = asyncio.StreamReader(limit=1 << 24)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(drain)
        )
        reading = asyncio.create_task(self._read(reader))
        try:
            await work(self)
        finally:
            self.end()
            await serving
            os.close(target)
            await reading
            transport.close()
            os.close(source)

    def end(self) -> None:
        """Close the agent's input; the second time does nothing."""
        if self._feed >= 0:
            os.close(self._feed)
            self._feed = -1

    def send(self, frame: Json) -> None:
        """Send a frame as it is."""
        os.write(self._feed, json.dumps(frame).encode() + b"\n")

    def ask(self, method: str, **params: Json) -> "asyncio.Future[Json]":
        """Send a request; its answer comes with the future."""
        self._next += 1
        self._methods[self._next] = method
        self._waiting[self._next] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._waiting[self._next]

    async def result(self, method: str, **params: Json) -> Json:
        """Send a request and return its result."""
        frame = await self.ask(method, **params)
        assert "result" in frame, frame
        return frame["result"]

    async def error(self, method: str, **params: Json) -> Json:
        """Send a request that is refused, and return the error."""
        frame = await self.ask(method, **params)
        assert "error" in frame, frame
        return frame["error"]

    async def new(self, **params: Json) -> str:
        """Begin a session."""
        given = {"cwd": str(self.agent.cwd), "mcpServers": [], **params}
        result = await self.result("session/new", **given)
        return str(result["sessionId"])

    async def until(self, condition: Callable[[Json], bool]) -> Json:
        """Wait for a frame."""
        while True:
            for frame in self.frames:
                if condition(frame):
                    return frame
            await asyncio.sleep(0)

    def updates(self) -> list[Json]:
        """Return the updates so far."""
        return [
            frame["params"]["update"]
            for frame in self.frames
            if frame.get("method") == "session/update"
        ]

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            frame = json.loads(line)
            self.frames.append(frame)
            check_frame(frame, self._methods)
            if "method" not in frame:
                with suppress(KeyError):
                    self._waiting[frame["id"]].set_result(frame)
            elif "id" in frame and self.answer is not None:
                self.send({"jsonrpc": "2.0", "id": frame["id"], **self.answer(frame)})
