"""What serving is tested with: a runtime as small as replay allows, and logs to replay in it."""

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from llm_replay.chunks import Chunk
from llm_replay.config import ReplayConfig
from llm_replay.pacing import Pace
from llm_replay.replay import Replay, ReplayHandle, install_llm_replay
from llm_replay.rounds import Step, as_entry
from llm_replay.script import SessionScript
from llm_replay.seam import ProviderAdapter, StreamHandler
from llm_replay.tokens import Roots
from llm_replay.verdict import Fact, read_verdict


@dataclass(frozen=True, kw_only=True)
class Request:
    session_id: str | None = "live"
    lineage: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    purpose: str = "turn"
    tools: list[dict[str, Any]] = field(default_factory=list)


class Runtime:
    """A waterfall of handlers, and adapters behind it."""

    def __init__(self) -> None:
        self.handlers: list[StreamHandler] = []
        self.providers: dict[str, ProviderAdapter] = {}

    def use(self, handler: StreamHandler, /) -> Callable[[], None]:
        self.handlers.append(handler)
        return lambda: self.handlers.remove(handler)

    def register_provider(
        self, provider_id: str, adapter: ProviderAdapter, /
    ) -> Callable[[], None]:
        self.providers[provider_id] = adapter
        return functools.partial(self.providers.__delitem__, provider_id)

    def stream(self, request: Request, provider: str = "") -> AsyncGenerator[Chunk, None]:
        for handler in self.handlers:
            stream = handler(request)
            if stream is not None:
                return stream
        return self.providers[provider].stream(request)


async def collect(stream: AsyncGenerator[Chunk, None]) -> list[Chunk]:
    async with contextlib.aclosing(stream):
        return [chunk async for chunk in stream]


def text_call(*pieces: str) -> list[Chunk]:
    deltas: list[Chunk] = [{"type": "text-delta", "index": 0, "text": piece} for piece in pieces]
    return [*deltas, {"type": "finish", "reason": {"kind": "stop"}}]


def texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk["text"] for chunk in chunks if chunk["type"] == "text-delta"]


def write_log(
    path: Path, *calls: Sequence[Chunk], times: Sequence[int] = (), **header: object
) -> Path:
    """Write a log with `llm/call` events; `times` are those of its records, in order."""
    head = {"type": "session", "version": 1, "id": "recorded", "createdAt": 0, **header}
    events: list[dict[str, Any]] = []
    for number, call in enumerate(calls, start=1):
        place = {"turn": 1, "step": number}
        events.append({"type": "llm/call", "data": {**place, "call": number, "purpose": "turn"}})
        events.extend(
            {"type": "assistant/chunk", "data": {**place, "chunk": chunk}} for chunk in call
        )
    for seq, (event, time) in enumerate(zip(events, times, strict=False)):
        event |= {"seq": seq, "time": time}
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in [head, *events]))
    return path


def install(
    runtime: Runtime,
    file: Path | None,
    *children: Path,
    verdict: Path | None = None,
    environ: Mapping[str, str] | None = None,
    **config: Any,  # noqa: ANN401  as ReplayConfig takes them
) -> ReplayHandle:
    """Install replay of `file`, with no other environment than what is given here."""
    told = dict(environ or {})
    if verdict is not None:
        told["DSH_SNAPSHOT_VERDICT_DIR"] = str(verdict)
    replay = ReplayConfig(file=file, child_files=children, **config)
    return install_llm_replay(runtime, replay, environ=told)


def facts(directory: Path) -> list[Fact]:
    """Return the facts of all files but the first of each, which tells of the installation."""
    return [fact for file in read_verdict(directory) for fact in file.facts[1:]]


def told(directory: Path) -> list[str]:
    """Return the facts in short: `bound 0 live`, `call 0.1`, `fault exhausted 0.2`."""
    return [_short(fact) for fact in facts(directory)]


def _short(fact: Fact) -> str:
    words = [fact["fact"], fact.get("kind", "")]
    if "call" in fact:
        words.append(f"{fact['script']}.{fact['call']}")
    elif "script" in fact:
        words.append(str(fact["script"]))
    if fact["fact"] == "bound":
        words += [str(fact["session"]), fact.get("lineage", "")]
    return " ".join(word for word in words if word)


def schema_problems(schema: object, value: object) -> list[str]:
    """Return what a JSON Schema says against a value."""
    validator = import_module("jsonschema").Draft202012Validator  # which has no types
    validator.check_schema(schema)
    return [problem.message for problem in validator(schema).iter_errors(value)]


def serving(
    *steps: Step,
    children: Sequence[Sequence[Step]] = (),
    pace: Pace | None = None,
    verdict: Path | None = None,
    roots: Roots | None = None,
) -> Replay:
    """Return what serves hand-written scripts, without any runtime."""
    scripts = [
        SessionScript(
            recorded_id="",
            created_at=0,
            entries=[as_entry(step) for step in script],
            primary=index == 0,
            index=index,
            file=f"session.{index}.jsonl",
            overridden=frozenset(range(len(script))),
        )
        for index, script in enumerate([steps, *children])
    ]
    return Replay(scripts, roots=roots or Roots(), pace=pace, directory=verdict)
