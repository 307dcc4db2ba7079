"""The provider over a real connection: cuts, stalls, resets and refusals."""

import asyncio
import json
import socket
import struct
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest
from chat_server import (
    KEY,
    Exchange,
    chat_request,
    chunked,
    delta,
    events,
    head,
    refused,
    streamed,
)

from acp_example.exceptions import ModelError
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
HELLO = events(delta(content="hello"), delta("stop"))


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


def test_a_request_names_its_key_and_asks_for_a_stream(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), base_path="/v1/", headers={"X-Team": "tools"})

    assert outcome.text == "hello"
    assert outcome.target == "POST /v1/chat/completions HTTP/1.1"
    assert outcome.headers["authorization"] == f"Bearer {KEY}"
    assert outcome.headers["accept"] == "text/event-stream"
    assert outcome.headers["content-type"] == "application/json"
    assert outcome.headers["x-team"] == "tools"
    assert outcome.body == {
        "model": "deepseek-chat",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_configured_header_replaces_the_key(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), headers={"Authorization": "Basic eA=="})

    assert outcome.headers["authorization"] == "Basic eA=="


def test_a_missing_key_is_said_before_anything_is_sent(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), environment={"DEEPSEEK_API_KEY": " "})

    assert outcome.target == ""
    assert str(outcome.error) == (
        "AUTH: there is no key for DeepSeek: set DEEPSEEK_API_KEY, or configure key_env"
    )


@pytest.mark.parametrize("key", ["sk-1\nx", "sk-schlüssel"])
def test_a_key_that_no_header_can_carry_is_not_quoted(exchange: Exchange, key: str) -> None:
    outcome = exchange(streamed(HELLO), environment={"DEEPSEEK_API_KEY": key})

    assert str(outcome.error) == (
        "AUTH: DEEPSEEK_API_KEY holds a character that no HTTP header can carry"
    )


def test_a_key_may_stand_in_a_file(exchange: Exchange, tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    file.write_text("DEEPSEEK_API_KEY='from the file'\n")

    outcome = exchange(streamed(HELLO), environment={}, env_file=str(file))

    assert outcome.headers["authorization"] == "Bearer from the file"


@pytest.mark.parametrize("environment", [{"DEEPSEEK_API_KEY": ""}, {"DSH_SNAPSHOT": "record"}])
def test_a_file_gives_no_key_where_the_environment_decides(
    exchange: Exchange, tmp_path: Path, environment: dict[str, str]
) -> None:
    file = tmp_path / "keys.env"
    file.write_text("DEEPSEEK_API_KEY=from-the-file\n")

    outcome = exchange(streamed(HELLO), environment=environment, env_file=str(file))

    assert str(outcome.error) == (
        "AUTH: there is no key for DeepSeek: set DEEPSEEK_API_KEY, or configure key_env"
    )


def test_an_endpoint_without_a_key_gets_none(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), environment={}, key_env=None)

    assert outcome.text == "hello"
    assert "authorization" not in outcome.headers


def test_an_endpoint_from_the_environment_goes_without_a_key(exchange: Exchange) -> None:
    outcome = exchange(
        streamed(HELLO),
        environment={"LOCAL_URL": "{base_url}"},
        base_url="https://api.deepseek.com",
        base_url_env="LOCAL_URL",
    )

    assert outcome.text == "hello"
    assert "authorization" not in outcome.headers


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (
            "400 Bad Request",
            '{"error":{"message":"temperature: too hot"}}',
            "INVALID_REQUEST",
            "DeepSeek answered 400: temperature: too hot",
        ),
        (
            "400 Bad Request",
            '{"error":{"message":"This model\'s maximum context length is 65536 tokens"}}',
            "CONTEXT_WINDOW_EXCEEDED",
            "DeepSeek answered 400: This model's maximum context length is 65536 tokens",
        ),
        (
            "401 Unauthorized",
            '{"error":{"message":"no such key: key-for-tests-only"}}',
            "AUTH",
            "DeepSeek answered 401: no such key: [key]",
        ),
        ("402 Payment Required", '{"error":"empty"}', "QUOTA", "DeepSeek answered 402: empty"),
        ("403 Forbidden", "not   here\n", "AUTH", "DeepSeek answered 403: not here"),
        ("404 Not Found", "", "HTTP_404", "DeepSeek answered 404"),
        ("408 Request Timeout", "slow", "HTTP_408", "DeepSeek answered 408: slow"),
        (
            "413 Content Too Large",
            '{"detail":"shorten it"}',
            "INVALID_REQUEST",
            "DeepSeek answered 413: shorten it",
        ),
        (
            "429 Too Many Requests",
            '{"message":"slower"}',
            "RATE_LIMIT",
            "DeepSeek answered 429: slower",
        ),
        (
            "429 Too Many Requests",
            '{"error":{"message":"You exceeded your current quota"}}',
            "QUOTA",
            "DeepSeek answered 429: You exceeded your current quota",
        ),
        ("500 Internal Server Error", "oops", "SERVER", "DeepSeek answered 500: oops"),
        ("503 Service Unavailable", "[]", "SERVER", "DeepSeek answered 503: []"),
        ("307 Temporary Redirect", "", "HTTP_307", "DeepSeek answered 307"),
    ],
)
def test_a_refusal_is_a_failure_with_a_code(
    exchange: Exchange, status: str, body: str, code: str, message: str
) -> None:
    outcome = exchange(refused(status, body, x_request_id="req-7"))

    assert outcome.chunks == []
    assert outcome.error is not None
    assert outcome.error.code == code
    assert outcome.error.message == message
    assert outcome.error.status == int(status[:3])
    assert outcome.error.request_id == "req-7"
    assert outcome.error.retry_after_ms is None


@pytest.mark.parametrize(
    ("headers", "delay_ms"),
    [
        ({"retry_after": "7"}, 7000),
        ({"retry_after": "0.25"}, 250),
        ({"retry_after": "Fri, 02 Jan 2026 03:04:35 GMT"}, 30_000),
        ({"retry_after": "Fri, 02 Jan 2026 03:04:35 -0000"}, 30_000),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:00 GMT"}, 0),
        ({"retry_after": "7", "retry_after_ms": "1500"}, 1500),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({}, None),
    ],
)
def test_a_delay_that_the_provider_asks_for_is_kept(
    exchange: Exchange, headers: dict[str, str], delay_ms: int | None
) -> None:
    outcome = exchange(refused("429 Too Many Requests", "", **headers))

    assert outcome.error is not None
    assert outcome.error.retry_after_ms == delay_ms


def test_an_endless_refusal_is_read_only_so_far(exchange: Exchange) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head("500 Internal Server Error", transfer_encoding="chunked"))
        while not writer.is_closing():
            writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
            await writer.drain()

    outcome = exchange(answer)

    assert outcome.error is not None
    assert outcome.error.message == f"DeepSeek answered 500: {'x' * 500}…"


def asked(monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception) -> ModelError:
    """Return what a call fails with where the network gives this answer."""

    async def handle(_self: object, _request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", handle)
    adapter = ChatAdapter(Config(base_url="http://host", key_env=None), environment={})

    async def scenario() -> ModelError:
        with pytest.raises(ModelError) as caught:
            await anext(adapter.stream(chat_request()))
        return caught.value

    return asyncio.run(scenario())


def test_a_connection_that_takes_too_long_is_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    error = asked(monkeypatch, httpx.ConnectTimeout(""))

    assert str(error) == "TIMEOUT: http://host/chat/completions accepted no connection for 30 s"


def test_a_date_to_wait_for_is_seen_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    late = {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}
    never = {"retry-after": "Fri, 31 Dec 9999 00:00:00 GMT"}

    assert asked(monkeypatch, httpx.Response(429, headers=late)).retry_after_ms == 0
    delay = asked(monkeypatch, httpx.Response(429, headers=never)).retry_after_ms
    assert delay is not None
    assert delay > 10**14


def test_silence_before_the_answer_is_a_time_out(exchange: Exchange) -> None:
    async def answer(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    outcome = exchange(answer, idle_timeout_s=0.05)

    assert outcome.chunks == []
    assert str(outcome.error) == (
        f"TIMEOUT: {outcome.base_url}/chat/completions sent nothing for 0.05 s"
    )


def test_silence_within_the_answer_is_a_time_out(exchange: Exchange) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head() + events(delta(content="so far"), done=False))
        await asyncio.Event().wait()

    outcome = exchange(answer, idle_timeout_s=0.05)

    assert outcome.text == "so far"
    assert str(outcome.error) == (
        f"TIMEOUT: {outcome.base_url}/chat/completions sent nothing for 0.05 s"
    )


def test_a_reset_connection_is_a_transport_failure(exchange: Exchange) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head() + events(delta(content="so far"), done=False))
        await writer.drain()
        linger = struct.pack("ii", 1, 0)  # closing now sends a reset
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    outcome = exchange(answer)

    assert str(outcome.error) == (
        f"TRANSPORT: the answer from {outcome.base_url}/chat/completions broke off: "
        "the connection was reset"
    )


def test_a_half_sent_body_is_a_transport_failure(exchange: Exchange) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(transfer_encoding="chunked"))
        writer.write(chunked([events(delta(content="so far"), done=False)])[:-5])

    outcome = exchange(answer)

    assert outcome.text == "so far"
    assert str(outcome.error) == (
        f"TRANSPORT: the answer from {outcome.base_url}/chat/completions broke off: peer closed "
        "connection without sending complete message body (incomplete chunked read)"
    )


def test_a_server_that_is_not_there_is_a_transport_failure(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), base_url="http://127.0.0.1:1")

    assert str(outcome.error) == (
        "TRANSPORT: no connection to http://127.0.0.1:1/chat/completions: "
        "All connection attempts failed"
    )


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("ftp://host", "'ftp://host/chat/completions' is no http or https URL"),
        ("http://host:x", "'http://host:x/chat/completions': Invalid port: 'x'"),
    ],
)
def test_a_base_url_that_is_none_is_not_worth_a_retry(
    exchange: Exchange, base_url: str, message: str
) -> None:
    outcome = exchange(streamed(HELLO), base_url=base_url)

    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == ("INVALID_REQUEST", message)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(events(delta(content="so far"), done=False), id="no end"),
        pytest.param(events(delta(content="so far")).removesuffix(b"\n"), id="no blank line"),
    ],
)
def test_a_stream_without_its_end_is_truncated(exchange: Exchange, body: bytes) -> None:
    outcome = exchange(streamed(body) if body else streamed())

    assert not any(chunk["type"] == "finish" for chunk in outcome.chunks)
    assert str(outcome.error) == "STREAM_CLOSED: the stream ended without [DONE]"


@pytest.mark.parametrize("payload", ["{oops" + "z" * 200, "[1]", '"text"', "[" * 100_000])
def test_a_garbled_payload_ends_the_answer(exchange: Exchange, payload: str) -> None:
    outcome = exchange(streamed(events(delta(content="so far"), payload)))

    assert outcome.text == "so far"
    assert str(outcome.error) == (
        f"MALFORMED_RESPONSE: the stream carries something that is no JSON object: {payload[:120]}"
    )


def test_an_answer_that_is_no_stream_is_malformed(exchange: Exchange) -> None:
    outcome = exchange(refused("200 OK", json.dumps({"choices": []})))

    assert str(outcome.error) == (
        "MALFORMED_RESPONSE: the answer is no event stream but 'application/json'"
    )


def test_an_answer_of_no_type_is_malformed(exchange: Exchange) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    assert str(exchange(answer).error) == (
        "MALFORMED_RESPONSE: the answer is no event stream but 'no content type'"
    )


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


def test_an_empty_completion_is_a_failure(exchange: Exchange) -> None:
    outcome = exchange(streamed(events(delta(role="assistant", content=""), delta("stop"))))

    assert outcome.chunks == [
        {
            "type": "finish",
            "reason": {
                "kind": "error",
                "failure": {
                    "code": "EMPTY_RESPONSE",
                    "message": "the model completed a response with no content",
                },
            },
        }
    ]


def test_an_error_inside_the_stream_ends_the_answer(exchange: Exchange) -> None:
    error = {"error": {"message": "key-for-tests-only is overloaded", "code": 503}}

    outcome = exchange(streamed(events(delta(content="so far"), error)))

    assert outcome.text == "so far"
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.status) == ("SERVER", 503)
    assert outcome.error.message == "the stream carries an error: [key] is overloaded"
