from datetime import UTC, datetime

import pytest

from acp_example.provider.failures import failure_code, http_failure, retry_after_ms, stream_failure

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "code", "status", "message"),
    [
        ({"message": "slower", "code": 429}, "RATE_LIMIT", 429, "slower"),
        ({"message": "slower", "code": "rate_limit"}, "SERVER", None, "slower"),
        ({"message": "x", "type": "insufficient_quota"}, "QUOTA", None, "x"),
        ({"code": 200}, "SERVER", None, '{"code": 200}'),
        ("overloaded", "SERVER", None, "overloaded"),
        ({"message": {"deep": 1}}, "SERVER", None, '{"message": {"deep": 1}}'),
    ],
)
def test_an_error_in_a_stream_is_a_failure_with_a_code(
    error: object, code: str, status: int | None, message: str
) -> None:
    failure = stream_failure(error)

    assert (failure.code, failure.status) == (code, status)
    assert failure.message == f"the stream carries an error: {message}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error":{"message":"from an error"}}', ": from an error"),
        ('{"error":"in a word"}', ": in a word"),
        ('{"message":"from a message"}', ": from a message"),
        ('{"detail":"from a detail"}', ": from a detail"),
        ('{"other":1}', ': {"other":1}'),
        (" over\n two  lines ", ": over two lines"),
        ("x" * 501, f": {'x' * 500}…"),
        ("[" * 100_000, f": {'[' * 500}…"),
        ("", ""),
    ],
)
def test_a_refusal_is_told_in_the_providers_words(body: str, said: str) -> None:
    headers = {"retry-after": "2", "request-id": "r-1"}

    failure = http_failure(provider="Acme", status=503, headers=headers, body=body, now=NOW)

    assert failure.message == f"Acme answered 503{said}"
    assert (failure.code, failure.status) == ("SERVER", 503)
    assert (failure.retry_after_ms, failure.request_id) == (2000, "r-1")


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (400, "no", "INVALID_REQUEST"),
        (400, "Context length exceeded", "CONTEXT_WINDOW_EXCEEDED"),
        (400, "the PROMPT IS TOO LONG", "CONTEXT_WINDOW_EXCEEDED"),
        (400, "maximum context", "CONTEXT_WINDOW_EXCEEDED"),
        (400, "too many tokens", "CONTEXT_WINDOW_EXCEEDED"),
        (413, "context length", "INVALID_REQUEST"),
        (401, "", "AUTH"),
        (403, "", "AUTH"),
        (402, "", "QUOTA"),
        (403, "Insufficient Balance", "QUOTA"),
        (429, "insufficient_quota", "QUOTA"),
        (500, "billing hard limit", "QUOTA"),
        (429, "", "RATE_LIMIT"),
        (500, "", "SERVER"),
        (599, "", "SERVER"),
        (408, "", "HTTP_408"),
        (418, "", "HTTP_418"),
    ],
)
def test_a_status_and_its_words_have_a_code(status: int, text: str, code: str) -> None:
    assert failure_code(status, text) == code


@pytest.mark.parametrize(
    ("headers", "delay_ms"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": " 3 "}, 3000),
        ({"retry-after": "1.5"}, 1500),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "9999999999"}, None),
        ({"retry-after": "\u0663"}, None),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:06 GMT"}, 1000),
        ({"retry-after": "Fri, 02 Jan 2026 05:04:06 +0200"}, 1000),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:06 -0000"}, 1000),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:04 GMT"}, 0),
        ({"retry-after-ms": "7.4", "retry-after": "3"}, 7),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3000),
    ],
)
def test_a_delay_that_was_asked_for_is_read_in_every_form(
    headers: dict[str, str], delay_ms: int | None
) -> None:
    assert retry_after_ms(headers, now=NOW) == delay_ms
