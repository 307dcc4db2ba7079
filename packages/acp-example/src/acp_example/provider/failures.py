"""What an HTTP answer or an error in a stream says about a failure. No I/O."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

from acp_example.exceptions import ModelError

_EXCERPT: Final = 500
_QUOTA: Final = re.compile(
    r"insufficient[ _](quota|balance|credits?)|quota[ _]exceeded|exceeded your current quota"
    r"|billing|out of credits",
    re.IGNORECASE,
)
_CONTEXT: Final = re.compile(
    r"context[ _](length|window|size)|maximum context|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_CODES: Final[Mapping[int, str]] = {
    HTTPStatus.BAD_REQUEST: "INVALID_REQUEST",
    HTTPStatus.UNAUTHORIZED: "AUTH",
    HTTPStatus.PAYMENT_REQUIRED: "QUOTA",
    HTTPStatus.FORBIDDEN: "AUTH",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "INVALID_REQUEST",
    HTTPStatus.TOO_MANY_REQUESTS: "RATE_LIMIT",
}
_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-ds-trace-id")


def http_failure(
    *, provider: str, status: int, headers: Mapping[str, str], body: str, now: datetime
) -> ModelError:
    """Return the failure that an answer other than 2xx stands for.

    `headers` must be looked up without regard to case.
    """
    said = _explanation(body)
    return ModelError(
        code=failure_code(status, body),
        message=f"{provider} answered {status}: {said}"
        if said
        else f"{provider} answered {status}",
        status=status,
        retry_after_ms=retry_after_ms(headers, now=now),
        request_id=next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None),
    )


def stream_failure(error: object) -> ModelError:
    """Return the failure that an error object inside a stream of status 200 stands for."""
    details: Mapping[str, Any] = error if isinstance(error, dict) else {"message": error}
    text = json.dumps(details, ensure_ascii=False)
    code = details.get("code")
    status = code if isinstance(code, int) and code in _statuses() else None
    return ModelError(
        code=failure_code(status or HTTPStatus.INTERNAL_SERVER_ERROR, text),
        message=f"the stream carries an error: {_explanation(text) or _cut(text)}",
        status=status,
    )


def failure_code(status: int, text: str) -> str:
    """Return the code of a failed request; words about a quota count at any status."""
    if _QUOTA.search(text):
        return "QUOTA"
    if status == HTTPStatus.BAD_REQUEST and _CONTEXT.search(text):
        return "CONTEXT_WINDOW_EXCEEDED"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "SERVER"
    return _CODES.get(status, f"HTTP_{status}")


def retry_after_ms(headers: Mapping[str, str], *, now: datetime) -> int | None:
    """Return the delay that a provider asked for: seconds, a date, or OpenAI's milliseconds."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return round(milliseconds)
    asked = headers.get("retry-after", "").strip()
    seconds = _number(asked)
    if seconds is not None:
        return round(seconds * 1000)
    try:
        until = parsedate_to_datetime(asked)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0, round((until - now).total_seconds() * 1000))


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d+)?", text.strip(), re.ASCII) else None


def _explanation(body: str) -> str:
    """Return what the body says in words: the message of its error, or the body itself."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return _cut(body)
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    return _cut(value if isinstance(value, str) else body)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def _statuses() -> set[int]:
    return {status.value for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST}
