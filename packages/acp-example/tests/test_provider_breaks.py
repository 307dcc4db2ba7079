"""Answers over a real connection that stall, break off or say nothing."""

import asyncio
import json
import socket
import struct

import pytest
from chat_server import (
    Exchange,
    chunked,
    delta,
    events,
    head,
    refused,
    streamed,
)


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
