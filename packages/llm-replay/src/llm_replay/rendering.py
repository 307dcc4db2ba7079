"""An entry as it is served: live directories for tokens, live text for placeholders."""

from collections.abc import Awaitable, Callable
from typing import Any

from llm_replay.derive import ReplayEntry
from llm_replay.script import SessionScript
from llm_replay.tokens import Roots, serve_chunks, serve_value


def preparation(
    script: SessionScript,
    place: int,
    request: Any,  # noqa: ANN401  the runtime's own request
    roots: Roots,
) -> Callable[[], Awaitable[ReplayEntry]]:
    """Return what makes the call at `place` of `script` ready to be served."""
    entry = script.entries[place]

    async def prepare() -> ReplayEntry:
        if place in script.overridden:
            served: ReplayEntry = serve_value(entry, roots)
            return served
        if script.tokens:
            return {**entry, "chunks": serve_chunks(entry["chunks"], roots)}
        return entry

    return prepare
