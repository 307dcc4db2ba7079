"""An entry as it is served: live directories for tokens, live text for placeholders."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from llm_replay.derive import ReplayEntry
from llm_replay.placeholders import has_placeholder, resolve_scripted_entry
from llm_replay.script import SessionScript
from llm_replay.tokens import Roots, serve_chunks, serve_value

Preparation: TypeAlias = Callable[[], Awaitable[ReplayEntry]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The messages of a request as they were when it was made."""

    messages: list[Any]


def preparation(
    script: SessionScript,
    place: int,
    request: Any,  # noqa: ANN401  the runtime's own request
    roots: Roots,
) -> Preparation:
    """Return what makes the call at `place` of `script` ready to be served.

    In hand-written entries all served tokens and placeholders are live, in a log with tokens
    the tokens alone, in a literal log `{{cwd}}` and placeholders.
    """
    entry = script.entries[place]
    if not _has_braces(entry):
        return _ready(lambda: entry)
    if script.tokens and place not in script.overridden:
        return _ready(lambda: {**entry, "chunks": _served(entry["chunks"], roots)})
    outside = _hand_written(roots) if place in script.overridden else _literal(roots)
    if not has_placeholder(entry):
        return _ready(lambda: resolve_scripted_entry(entry, request, outside=outside))
    asked = _Asked(copy.deepcopy(list(request.messages)))

    async def resolve() -> ReplayEntry:
        # In a thread: a pattern may take a second, and everybody else goes on.
        return await asyncio.to_thread(resolve_scripted_entry, entry, asked, outside=outside)

    return resolve


def _ready(prepare: Callable[[], ReplayEntry]) -> Preparation:
    async def ready() -> ReplayEntry:
        return prepare()

    return ready


def _served(chunks: Sequence[Any], roots: Roots) -> list[Any]:
    """Serve the tokens of a log's call: each lies whole in one chunk, and most chunks have none."""
    return [serve_chunks([chunk], roots)[0] if _has_braces(chunk) else chunk for chunk in chunks]


def _hand_written(roots: Roots) -> Callable[[str], str]:
    return lambda text: str(serve_value(text, roots))


def _literal(roots: Roots) -> Callable[[str], str]:
    return lambda text: text.replace("{{cwd}}", roots.cwd or "{{cwd}}")


def _has_braces(value: Any) -> bool:  # noqa: ANN401  JSON
    """Say whether anything in a value could be a token; most have none, and need no copy."""
    try:
        return b"{{" in orjson.dumps(value)
    except TypeError:  # a lone surrogate, or a number that only the standard library reads
        return True
