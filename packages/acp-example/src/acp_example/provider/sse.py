"""Server-sent events of a chat completion: response bytes to data payloads."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError

from acp_example.exceptions import ModelError

DONE: Final = "[DONE]"


async def read_payloads(response: httpx.Response) -> AsyncGenerator[str, None]:
    """Yield the data of each event, up to and including `[DONE]`.

    An event needs its blank line: what stands after the last one is a truncation, not data.

    Raises:
        ModelError: The body is no event stream, or ends without `[DONE]`.
    """
    # The format is always UTF-8, whatever charset the header names.
    response.encoding = "utf-8"
    try:
        async with aclosing(EventSource(response).aiter_sse()) as events:
            async for event in events:
                if not _carries_data(event):
                    continue
                yield event.data
                if event.data == DONE:
                    return
    except SSEError:
        kind = response.headers.get("content-type", "no content type")
        raise ModelError(
            code="MALFORMED_RESPONSE", message=f"the answer is no event stream but {kind!r}"
        ) from None
    raise ModelError(code="STREAM_CLOSED", message=f"the stream ended without {DONE}")


def _carries_data(event: ServerSentEvent) -> bool:
    # The decoder also reports events of other fields alone; those have a name, an id or a delay.
    if event.data:
        return True
    return event.event == "message" and not event.id and event.retry is None
