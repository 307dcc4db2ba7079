"""Requests that the provider's endpoint does not answer with a stream."""

import asyncio

import httpx
import pytest
from chat_server import (
    HELLO,
    Exchange,
    chat_request,
    head,
    refused,
    streamed,
)

from acp_example.exceptions import ModelError
from acp_example.provider import ChatAdapter, Config


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
