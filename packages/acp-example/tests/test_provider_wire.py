"""Answers over a real connection, however they are cut."""

import asyncio
from contextlib import aclosing

import pytest
from chat_server import (
    HELLO,
    Exchange,
    chat_request,
    delta,
    events,
    head,
    streamed,
)

from acp_example.provider import ChatAdapter, Config

BODY = events(
    delta(reasoning_content="thinking …"),
    delta(content="Grüße, "),
    delta(content="世界 🌍"),
    delta(
        tool_calls=[
            {"index": 0, "id": "call_0", "function": {"name": "bash", "arguments": '{"comm'}}
        ]
    ),
    delta(tool_calls=[{"index": 0, "function": {"arguments": 'and": "ls é"}'}}]),
    delta("tool_calls"),
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    },
)


CALL = {"id": "call_0", "name": "bash"}


CHUNKS = [
    {"type": "block-start", "index": 0, "blockType": "reasoning"},
    {"type": "reasoning-delta", "index": 0, "text": "thinking …"},
    {"type": "block-start", "index": 1, "blockType": "text"},
    {"type": "text-delta", "index": 1, "text": "Grüße, "},
    {"type": "text-delta", "index": 1, "text": "世界 🌍"},
    {"type": "block-start", "index": 2, "blockType": "tool-call"},
    {"type": "tool-call-delta", "index": 2, **CALL, "argumentsDelta": '{"comm'},
    {"type": "tool-call-delta", "index": 2, **CALL, "argumentsDelta": 'and": "ls é"}'},
    {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "thinking …"}},
    {"type": "block-end", "index": 1, "block": {"type": "text", "text": "Grüße, 世界 🌍"}},
    {
        "type": "block-end",
        "index": 2,
        "block": {"type": "tool-call", **CALL, "arguments": '{"command": "ls é"}'},
    },
    {
        "type": "usage",
        "usage": {
            "inputTokens": 4,
            "outputTokens": 9,
            "cacheReadTokens": 16,
            "reasoningTokens": 4,
        },
    },
    {"type": "finish", "reason": {"kind": "tool-calls"}},
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 4096])
def test_an_answer_survives_any_cut_of_the_stream(exchange: Exchange, size: int) -> None:
    pieces = [BODY[start : start + size] for start in range(0, len(BODY), size)]

    outcome = exchange(streamed(*pieces))

    assert outcome.error is None
    assert outcome.chunks == CHUNKS


def test_chunks_come_as_soon_as_their_payload_does() -> None:
    """The server sends its second event only once the client has handled the first."""
    handled = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head() + events(delta(content="one"), done=False))
        await handled.wait()
        writer.write(events(delta(content="two"), delta("stop")))
        await writer.drain()
        writer.close()

    async def scenario() -> list[str]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        adapter = ChatAdapter(Config(base_url=f"http://127.0.0.1:{port}", key_env=None))
        seen: list[str] = []
        async with aclosing(adapter.stream(chat_request())) as chunks:
            async for chunk in chunks:
                if chunk["type"] == "text-delta":
                    seen.append(chunk["text"])
                    handled.set()
        server.close()
        return seen

    assert asyncio.run(scenario()) == ["one", "two"]


def test_a_closed_stream_hangs_up() -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head() + events(delta(content="one"), done=False))
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        adapter = ChatAdapter(Config(base_url=f"http://127.0.0.1:{port}", key_env=None))
        async with aclosing(adapter.stream(chat_request())) as chunks:
            await anext(chunks)
        await asyncio.wait_for(gone.wait(), 5)
        server.close()

    asyncio.run(scenario())


def test_bytes_that_are_no_utf8_become_replacement_characters(exchange: Exchange) -> None:
    body = events(delta(content="a?b"), delta("stop")).replace(b"?", b"\xc3\x28")

    assert exchange(streamed(body)).text == "a\N{REPLACEMENT CHARACTER}(b"


def test_a_stream_is_utf8_whatever_its_header_says(exchange: Exchange) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        kind = "text/event-stream; charset=latin-1"
        writer.write(head(content_type=kind) + events(delta(content="é"), delta("stop")))

    assert exchange(answer).text == "é"


def test_comments_and_events_without_data_say_nothing(exchange: Exchange) -> None:
    noise = b": keep-alive\n\nevent: ping\n\nid: 7\n\nretry: 10\n\ndata:\n\n"

    outcome = exchange(streamed(noise, HELLO))

    assert (outcome.text, outcome.error) == ("hello", None)
