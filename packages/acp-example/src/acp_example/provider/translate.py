"""Payloads of a chat completion stream to chunks of the model stream. No I/O."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from acp_example.exceptions import ModelError
from acp_example.provider.failures import stream_failure
from llm_replay.chunks import Chunk, TokenUsage

_QUOTED: Final = 120
_FINISH_KINDS: Final = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "length": "max-tokens",
    "content_filter": "refusal",
}


@dataclass(slots=True)
class _Block:
    """A block under construction; for tool calls also what names it on the wire."""

    index: int
    kind: str
    text: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""

    def finished(self) -> dict[str, Any]:
        """Return the complete block, as `block-end` carries it."""
        text = "".join(self.text)
        if self.kind != "tool-call":
            return {"type": self.kind, "text": text}
        # Some servers never name a call; without an id its result could not be sent back.
        return {
            "type": self.kind,
            "id": self.id or f"call-{self.index}",
            "name": self.name,
            "arguments": text,
        }


class Translator:
    """Turn payloads into chunks: deltas at once, everything that closes with `finish`.

    A block opens at the next free index when its first text arrives. Reasoning comes before
    content and content before tool calls, as they are told within one payload.
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._texts: dict[str, _Block] = {}
        self._calls: dict[int, _Block] = {}
        self._place = 0
        self._usage: Any = None
        self._reason: str | None = None

    def feed(self, payload: str) -> Iterator[Chunk]:
        """Yield the deltas that one payload carries.

        Raises:
            ModelError: The payload is not a JSON object, or is the provider's own error.
        """
        message = _decode(payload)
        if message.get("error"):
            raise stream_failure(message["error"])
        if message.get("usage") is not None:
            self._usage = message["usage"]
        for choice in _objects(message.get("choices")):
            yield from self._choice(choice)

    def finish(self) -> Iterator[Chunk]:
        """Yield the end of every block in opening order, the latest usage and the finish."""
        for block in self._blocks:
            yield {"type": "block-end", "index": block.index, "block": block.finished()}  # type: ignore[typeddict-item]  # the kind is chosen at run time
        usage = token_usage(self._usage)
        if usage is not None:
            yield {"type": "usage", "usage": usage}
        yield {"type": "finish", "reason": self._finish_reason()}  # type: ignore[typeddict-item]  # as above

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[Chunk]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from self._text(
                "reasoning", delta.get("reasoning_content") or delta.get("reasoning")
            )
            yield from self._text("text", delta.get("content"))
            for call in _objects(delta.get("tool_calls")):
                yield from self._call(call)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason

    def _text(self, kind: str, text: object) -> Iterator[Chunk]:
        if not isinstance(text, str) or not text:
            return
        block = self._texts.get(kind)
        if block is None:
            block = self._texts[kind] = self._open(kind)
            yield _start(block)
        block.text.append(text)
        if kind == "text":
            yield {"type": "text-delta", "index": block.index, "text": text}
        else:
            yield {"type": "reasoning-delta", "index": block.index, "text": text}

    def _call(self, call: Mapping[str, Any]) -> Iterator[Chunk]:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        block, opened = self._find_call(call.get("index"), _string(call.get("id")))
        if opened:
            yield _start(block)
        block.id = _string(call.get("id")) or block.id
        block.name = _string(function.get("name")) or block.name
        arguments = _string(function.get("arguments"))
        block.text.append(arguments)
        delta: dict[str, Any] = {"type": "tool-call-delta", "index": block.index, "id": block.id}
        if block.name:
            delta["name"] = block.name
        yield delta | {"argumentsDelta": arguments}  # type: ignore[misc]  # `name` is optional

    def _find_call(self, place: object, call_id: str) -> tuple[_Block, bool]:
        """Return the call at a wire index, and whether it is new.

        Some servers leave the index out, or give every call the index 0; another id is then
        another call.
        """
        if isinstance(place, int):
            self._place = place
        block = self._calls.get(self._place)
        if block is not None and (not call_id or not block.id or call_id == block.id):
            return block, False
        block = self._calls[self._place] = self._open("tool-call")
        return block, True

    def _open(self, kind: str) -> _Block:
        block = _Block(index=len(self._blocks), kind=kind)
        self._blocks.append(block)
        return block

    def _finish_reason(self) -> dict[str, Any]:
        word = self._reason or "stop"
        if word == "stop" and not self._blocks:
            return _error("EMPTY_RESPONSE", "the model completed a response with no content")
        kind = _FINISH_KINDS.get(word)
        if kind is None:
            return _error(word.upper(), f"the model stopped: {word}")
        return {"kind": kind}


def token_usage(wire: object) -> TokenUsage | None:
    """Return a provider's counts with cache reads taken out of the input, or nothing.

    A count that the provider left out stays out: absent is not zero.
    """
    if not isinstance(wire, dict):
        return None
    prompt, output = _count(wire, "prompt_tokens"), _count(wire, "completion_tokens")
    if prompt is None and output is None:
        return None
    cached = _count(wire.get("prompt_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _count(wire, "prompt_cache_hit_tokens")
    usage: TokenUsage = {
        "inputTokens": max(0, (prompt or 0) - (cached or 0)),
        "outputTokens": output or 0,
    }
    if cached is not None:
        usage["cacheReadTokens"] = cached
    reasoning = _count(wire.get("completion_tokens_details"), "reasoning_tokens")
    if reasoning is not None:
        usage["reasoningTokens"] = reasoning
    return usage


def _decode(payload: str) -> dict[str, Any]:
    if not payload:
        return {}
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError(
            code="MALFORMED_RESPONSE",
            message=f"the stream carries something that is no JSON object: {payload[:_QUOTED]}",
        )
    return value


def _start(block: _Block) -> Chunk:
    return {"type": "block-start", "index": block.index, "blockType": block.kind}


def _error(code: str, message: str) -> dict[str, Any]:
    return {"kind": "error", "failure": {"message": message, "code": code}}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object, key: str) -> int | None:
    count = value.get(key) if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
