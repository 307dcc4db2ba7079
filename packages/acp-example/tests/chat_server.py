"""A real HTTP server on the loopback address that answers as a test tells it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from acp_example.exceptions import ModelError
from acp_example.llm import ModelRequest
from acp_example.provider import ChatAdapter, Config

KEY = "key-for-tests-only"

_REQUEST: dict[str, Any] = {
    "provider": "deepseek",
    "model": "deepseek-chat",
    "system": None,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    "tools": [],
    "session_id": None,
    "lineage": None,
}

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def chat_request(**fields: Any) -> ModelRequest:  # noqa: ANN401  the fields of a request
    """Return a request with as little in it as a test needs."""
    return ModelRequest(**{**_REQUEST, **fields})


@dataclass(kw_only=True)
class Outcome:
    """What came of one call: the chunks, how it failed, and what the server got."""

    chunks: list[Any] = field(default_factory=list)
    error: ModelError | None = None
    target: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    base_url: str = ""

    @property
    def finish(self) -> Any:  # noqa: ANN401  a JSON value
        assert self.chunks[-1]["type"] == "finish"
        return self.chunks[-1]["reason"]

    @property
    def text(self) -> str:
        return "".join(chunk["text"] for chunk in self.chunks if chunk["type"] == "text-delta")


class Exchange(Protocol):
    """Makes one call against a server that gives one answer."""

    def __call__(
        self,
        answer: Answer,
        *,
        request: ModelRequest = ...,
        environment: Mapping[str, str] = ...,
        base_path: str = ...,
        **config: Any,  # noqa: ANN401  the keys of the plugin
    ) -> Outcome: ...


def chunked(pieces: Iterable[bytes]) -> bytes:
    """Return a body whose reader gets exactly these pieces, however TCP joins them."""
    parts = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return b"".join([*parts, b"0\r\n\r\n"])


def head(status: str = "200 OK", **headers: str) -> bytes:
    fields = {"content-type": "text/event-stream", "connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def streamed(*pieces: bytes) -> Answer:
    """Answer with an event stream cut into these pieces."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(transfer_encoding="chunked") + chunked(pieces))

    return answer


def refused(status: str, body: str = "", **headers: str) -> Answer:
    """Answer with another status, and a whole body."""
    data = body.encode()

    async def answer(writer: asyncio.StreamWriter) -> None:
        fields = {"content_type": "application/json", "content_length": str(len(data)), **headers}
        writer.write(head(status, **fields) + data)

    return answer


def events(*payloads: object, done: bool = True) -> bytes:
    """Return payloads as server-sent events."""
    texts = [p if isinstance(p, str) else json.dumps(p, ensure_ascii=False) for p in payloads]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def exchanging() -> Exchange:
    """Return what sends a request to a server that answers as a test tells it."""

    def run(
        answer: Answer,
        *,
        request: ModelRequest | None = None,
        environment: Mapping[str, str] | None = None,
        base_path: str = "",
        **config: Any,  # noqa: ANN401  the keys of the plugin
    ) -> Outcome:
        environment = {"DEEPSEEK_API_KEY": KEY} if environment is None else environment
        return asyncio.run(
            _exchange(answer, request or chat_request(), environment, base_path, config)
        )

    return run


async def _exchange(
    answer: Answer,
    request: ModelRequest,
    environment: Mapping[str, str],
    base_path: str,
    config: dict[str, Any],
) -> Outcome:
    outcome = Outcome()
    handlers: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append(task)
        start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        outcome.target = start
        outcome.headers = dict(_field(line) for line in lines if line)
        size = int(outcome.headers["content-length"])
        outcome.body = json.loads(await reader.readexactly(size))
        try:
            await answer(writer)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outcome.base_url = f"http://127.0.0.1:{port}{base_path}"
    adapter = ChatAdapter(
        Config.model_validate({"base_url": outcome.base_url, "env_file": None, **config}),
        environment={
            name: value.replace("{base_url}", outcome.base_url)
            for name, value in environment.items()
        },
        now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    try:
        async with aclosing(adapter.stream(request)) as chunks:
            async for chunk in chunks:
                outcome.chunks.append(chunk)
    except ModelError as error:
        outcome.error = error
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
    return outcome


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name.lower(), value


HELLO = events(delta(content="hello"), delta("stop"))
