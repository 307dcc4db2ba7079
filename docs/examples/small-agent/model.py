"""Where the model's words come from: an endpoint, or the recording of one."""

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Chunk = dict[str, Any]


def stream(
    system: str, tools: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> Iterator[Chunk]:
    """Return the chunks of the model's next answer, one by one."""
    if os.environ.get("DSH_SNAPSHOT") == "replay":
        return iter(next(RECORDED))
    return live(system, tools, messages)


# In replay: the answers of the recording, in order.


def recorded() -> Iterator[list[Chunk]]:
    """Yield the recorded answers: the chunks up to each `finish`."""
    chunks = []
    with Path(os.environ["DSH_SNAPSHOT_FILE"]).open() as lines:
        for line in lines:
            event = json.loads(line)
            if event["type"] == "assistant/chunk":
                chunks.append(served(event["data"]["chunk"]))
                if chunks[-1]["type"] == "finish":
                    yield chunks
                    chunks = []


def served(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Put the run's directories back where the recording has tokens for them."""
    if isinstance(value, dict):
        return {key: served(item) for key, item in value.items()}
    if isinstance(value, list):
        return [served(item) for item in value]
    if not isinstance(value, str):
        return value
    text, *rest = value.split("{{")
    for part in rest:
        name, _, after = part.partition("}}")
        text += ROOTS[name] + after
    return text


ROOTS = {
    "lit": "{{",
    "cwd": str(Path.cwd()),
    "home": os.environ.get("HOME", ""),
    "tmp": os.environ.get("TMPDIR", ""),
    "sessions": os.environ.get("DSH_SNAPSHOT_SESSIONS_ROOT", ""),
    "spill": os.environ.get("DSH_SNAPSHOT_SPILL_ROOT", ""),
    "run": os.environ.get("DSH_SNAPSHOT_RUN", ""),
}
RECORDED = recorded()


# Otherwise: an OpenAI-compatible endpoint, and a translation to chunks.


def live(
    system: str, tools: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> Iterator[Chunk]:
    """Ask the endpoint, and yield what it streams."""
    body = {
        "model": os.environ.get("MODEL", "gpt-4o-mini"),
        "stream": True,
        "messages": [{"role": "system", "content": system}, *map(spelled, messages)],
        "tools": [{"type": "function", "function": spelled_tool(tool)} for tool in tools],
    }
    base = os.environ.get("BASE_URL", "https://api.openai.com/v1")
    key = os.environ.get("API_KEY", "none")
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{base}/chat/completions", json.dumps(body).encode(), headers)
    blocks: dict[object, dict[str, Any]] = {}
    reason = "stop"
    with urllib.request.urlopen(request) as lines:
        for line in lines:
            data = line.decode().strip().removeprefix("data: ")
            if data.startswith("{"):
                for choice in json.loads(data)["choices"]:
                    reason = choice.get("finish_reason") or reason
                    yield from pieces(choice["delta"], blocks)
    for index, block in enumerate(blocks.values()):
        yield {"type": "block-end", "index": index, "block": block}
    yield {"type": "finish", "reason": {"kind": reason.replace("_", "-")}}


def pieces(delta: dict[str, Any], blocks: dict[object, dict[str, Any]]) -> Iterator[Chunk]:
    """Yield the chunks of one piece; what the pieces add up to is kept in `blocks`."""
    text = delta.get("content")
    if text:
        if "text" not in blocks:
            yield {"type": "block-start", "index": len(blocks), "blockType": "text"}
            blocks["text"] = {"type": "text", "text": ""}
        blocks["text"]["text"] += text
        yield {"type": "text-delta", "index": list(blocks).index("text"), "text": text}
    for call in delta.get("tool_calls") or []:
        function, place = call["function"], call["index"]
        if place not in blocks:
            yield {"type": "block-start", "index": len(blocks), "blockType": "tool-call"}
            head = {"type": "tool-call", "id": call["id"], "name": function["name"]}
            blocks[place] = {**head, "arguments": ""}
        more = function.get("arguments") or ""
        blocks[place]["arguments"] += more
        head = {"index": list(blocks).index(place), "id": blocks[place]["id"]}
        yield {"type": "tool-call-delta", **head, "argumentsDelta": more}


def spelled(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as the endpoint wants it."""
    content = message["content"]
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["id"], "content": content}
    if message["role"] == "user":
        return message
    text = "".join(block["text"] for block in content if block["type"] == "text")
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": block["arguments"]},
        }
        for block in content
        if block["type"] == "tool-call"
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def spelled_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool as the endpoint wants it."""
    return {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["schema"],
    }
