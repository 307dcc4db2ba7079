"""An entry as it is served: live directories for tokens, live text for placeholders."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from llm_replay.derive import ReplayEntry
from llm_replay.placeholders import has_placeholder, resolve_scripted_entry
from llm_replay.script import SessionScript
from llm_replay.tokens import Roots, serve_chunks, serve_value
from llm_replay.values import copied

Preparation: TypeAlias = Callable[[], Awaitable[ReplayEntry]]

_PIECE = 256


@dataclass(frozen=True, slots=True)
class _Asked:
    """The messages of a request as they were when it was made."""

    messages: list[Any]


class Rendering:
    """The entries of one script, on their way to be served.

    In hand-written entries all served tokens and placeholders are live, in a log with tokens
    the tokens alone, in a literal log `{{cwd}}` and placeholders. Where anything may be live is
    found out once, at the start: serving itself has a burst of chunks to keep up with.
    """

    def __init__(self, script: SessionScript, roots: Roots) -> None:
        self._script = script
        self._roots = roots
        self._live = [_live_places(entry) for entry in script.entries]

    def preparation(self, place: int, request: Any) -> Preparation:  # noqa: ANN401  the runtime's own request
        """Return what makes the call at `place` ready to be served."""
        entry, live = self._script.entries[place], self._live[place]
        hand_written = place in self._script.overridden
        if live is None:
            return _ready(lambda: entry)
        if self._script.tokens and not hand_written:
            return _ready(lambda: self._served(entry, live))
        outside = self._hand_written if hand_written else self._literal
        if not has_placeholder(entry):
            return _ready(lambda: resolve_scripted_entry(entry, request, outside=outside))
        asked = _Asked(copied(list(request.messages)))

        async def resolve() -> ReplayEntry:
            # In a thread: a pattern may take a second, and everybody else goes on.
            return await asyncio.to_thread(resolve_scripted_entry, entry, asked, outside=outside)

        return resolve

    def _served(self, entry: ReplayEntry, live: Sequence[int]) -> ReplayEntry:
        """Serve the tokens of a log's call: each lies whole in one chunk."""
        chunks = list(entry["chunks"])
        for place in live:
            [chunks[place]] = serve_chunks([chunks[place]], self._roots)
        return {**entry, "chunks": chunks}

    def _hand_written(self, text: str) -> str:
        return str(serve_value(text, self._roots))

    def _literal(self, text: str) -> str:
        return text.replace("{{cwd}}", self._roots.cwd or "{{cwd}}")


def _ready(prepare: Callable[[], ReplayEntry]) -> Preparation:
    async def ready() -> ReplayEntry:
        return prepare()

    return ready


def _live_places(entry: ReplayEntry) -> list[int] | None:
    """Return the places of the chunks in which anything could be live; `None`: nothing is."""
    chunks = entry.get("chunks", ())
    places: list[int] = []
    for start in range(0, len(chunks), _PIECE):
        piece = chunks[start : start + _PIECE]
        if _has_braces(piece):
            places += [place for place, chunk in enumerate(piece, start) if _has_braces(chunk)]
    rest = {key: value for key, value in entry.items() if key != "chunks"}
    return places if places or _has_braces(rest) else None


def _has_braces(value: Any) -> bool:  # noqa: ANN401  JSON
    """Say whether anything in a value could be a token; most have none, and need no copy."""
    try:
        return b"{{" in orjson.dumps(value)
    except TypeError:  # a lone surrogate, or a number that only the standard library reads
        return True
