"""The live model: the endpoint of the small agent, asked in a thread."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import model

from llm_replay import ModelInfo, RetryPolicy

SYSTEM = "Answer in one sentence."


class Endpoint:
    """A provider as the runtime registers it."""

    name = "Endpoint"
    models: Sequence[ModelInfo] = ()
    retry_policy: RetryPolicy | None = None

    async def stream(self, request: Any, /) -> AsyncGenerator[Any, None]:  # noqa: ANN401  the runtime's own request
        """Yield the chunks that the endpoint streams."""
        chunks = model.live(SYSTEM, [], request.messages)
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk
