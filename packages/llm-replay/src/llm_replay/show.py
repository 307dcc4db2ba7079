"""A log told in a few lines: its session, and what the model said in each call. No I/O."""

import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from llm_replay.chunks import DELTA_FIELDS
from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.session_log import SessionLog
from llm_replay.values import shown

_WORDS = 400
_TIMES_MS = range(10**11, 10**14)  # what is smaller is the place in a harvest, and no time


def summary_of(log: SessionLog, *, primary: bool) -> dict[str, Any]:
    """Return a log's summary as JSON."""
    seed_length = 0 if primary else log.header.seed_length
    calls = derive_calls(log.events, seed_length=seed_length)
    return {
        "file": log.name,
        "id": log.header.id,
        "lineage": log.header.lineage,
        "createdAt": log.header.created_at,
        "tokens": log.header.tokens,
        "events": len(log.events),
        "calls": [_call(call, log.events) for call in calls],
    }


def render(summary: dict[str, Any], *, width: int | None = None) -> str:
    """Return a summary as a person reads it, each line cut to the width of the terminal."""
    width = width or max(60, shutil.get_terminal_size((100, 24)).columns)
    lines = [_printable(summary["file"]), _title(summary)]
    if summary["calls"]:
        lines.append("  call  turn/step  ended       chunks  tokens in/out      time  said")
        lines += [_line(call) for call in summary["calls"]]
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in lines)


def _call(call: DerivedCall, events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    chunks = call.entry["chunks"] if call.entry else []
    texts = _texts(chunks)
    return {
        "call": call.call,
        "turn": call.turn,
        "step": call.step,
        "purpose": call.purpose,
        "kind": "hole" if call.entry is None else call.entry["kind"],
        "finish": _last(chunks, "finish", "reason", "kind"),
        "failure": _last(chunks, "finish", "reason", "failure"),
        "chunks": len(chunks),
        "text": "".join(text for kind, text in texts if kind == "text"),
        "reasoning": "".join(text for kind, text in texts if kind == "reasoning"),
        "toolCalls": list(_tool_calls(chunks)),
        "usage": _last(chunks, "usage", "usage"),
        "ms": _duration(call, events),
        "problem": call.problem,
    }


def _texts(chunks: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what was said, block by block; a block's end has the last word."""
    blocks: dict[object, tuple[str, str]] = {}
    for chunk in chunks:
        kind, index = chunk.get("type"), _text(chunk.get("index"))
        if kind in ("text-delta", "reasoning-delta"):
            before = blocks.get(index, ("", ""))[1]
            blocks[index] = kind.removesuffix("-delta"), before + _text(chunk.get("text", ""))
        elif kind == "block-end":
            block = _object(chunk.get("block"))
            if "text" in block:
                blocks[index] = _text(block.get("type")), _text(block["text"])
    return list(blocks.values())


def _tool_calls(chunks: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield the tools that were called, from the ends of their blocks or else from deltas."""
    found: dict[str, dict[str, str]] = {}
    for chunk in chunks:
        kind, index = chunk.get("type"), _text(chunk.get("index"))
        if kind == "tool-call-delta":
            call = found.setdefault(index, {"name": "", "arguments": ""})
            call["name"] = _text(chunk.get("name") or call["name"])
            call["arguments"] += _text(chunk.get(DELTA_FIELDS[kind], ""))
        elif kind == "block-end":
            block = _object(chunk.get("block"))
            if block.get("type") == "tool-call":
                found[index] = {key: _text(block.get(key, "")) for key in ("name", "arguments")}
    yield from found.values()


def _last(chunks: Sequence[dict[str, Any]], kind: str, *path: str) -> Any:  # noqa: ANN401  JSON
    """Return what stands at a path in the last chunk of a kind, or `None`."""
    found: Any = next((chunk for chunk in reversed(chunks) if chunk.get("type") == kind), None)
    for key in path:
        found = _object(found).get(key)
    return found


def _text(value: object) -> str:
    """Return a text as it is, and of anything else what a person needs to see of it."""
    return value if isinstance(value, str) else shown(value)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _duration(call: DerivedCall, events: Sequence[dict[str, Any]]) -> float | None:
    """Return the milliseconds from a call's first event to its last; `None` without times."""
    if not call.positions:
        return None
    first, last = events[call.place]["time"], events[call.positions[-1]]["time"]
    if not (_is_time(first) and _is_time(last)):
        return None
    duration: float = last - first
    return duration


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and _TIMES_MS.start <= value < _TIMES_MS.stop


def _title(summary: dict[str, Any]) -> str:
    parts = [f"  session {summary['id'] or '(without an id)'}"]
    if summary["lineage"] is not None:
        parts.append(f"lineage {summary['lineage']}")
    if _is_time(summary["createdAt"]):
        created = datetime.fromtimestamp(summary["createdAt"] / 1000, UTC)
        parts.append(f"{created:%Y-%m-%d %H:%M:%S} UTC")
    if summary["tokens"]:
        parts.append("normalized")
    parts += [_count(summary["events"], "event"), _count(len(summary["calls"]), "call")]
    return _printable(", ".join(parts))


def _line(call: dict[str, Any]) -> str:
    place = "" if call["turn"] is None else f"{call['turn']}/{call['step']}"
    if call["purpose"] == "compaction":
        place += " (c)" if place else "(c)"
    ended = call["finish"] or ("-" if call["kind"] == "chunks" else call["kind"])
    usage = _object(call["usage"])
    counts = [_text(usage.get(key, "")) for key in ("inputTokens", "outputTokens")]
    tokens = "/".join(counts) if usage else ""
    time = "" if call["ms"] is None else f"{call['ms'] / 1000:.1f} s"
    return _printable(
        f"  {call['call']:>4}  {place:<9}  {_text(ended):<10}  {call['chunks']:>6}  {tokens:>13}"
        f"  {time:>8}  {_said(call)}"
    )


def _said(call: dict[str, Any]) -> str:
    if call["problem"] is not None:
        return f"! {call['problem']}"
    words = [call["text"] or (f"({call['reasoning']})" if call["reasoning"] else "")]
    words += [f"→ {tool['name']} {tool['arguments']}" for tool in call["toolCalls"]]
    if call["failure"] is not None:
        failure = _object(call["failure"])
        words.append(f"! {_text(failure.get('code'))}: {_text(failure.get('message'))}")
    return "  ".join(" ".join(word[:_WORDS].split()) for word in words if word)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _printable(text: str) -> str:
    """Return the text without what moves a cursor or can't be encoded."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
