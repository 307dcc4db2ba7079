"""What the client is shown of a turn: one function per kind of session update. No I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acp_example.exceptions import ToolError
from acp_example.tools import Tool, ToolResult
from acp_example.tools.arguments import loads

Update = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FrameNames:
    """How a session's calls are named in frames; a child's carry its lineage and its parent."""

    prefix: str = ""
    parent: str | None = None

    def call(self, position: str) -> str:
        """Return the `toolCallId` of a call."""
        return f"{self.prefix}{position}"

    def meta(self) -> dict[str, Any]:
        """Return what every frame of a child's call carries besides."""
        return {"_meta": {"parentToolCallId": self.parent}} if self.parent else {}


def text_chunk(kind: str, text: str) -> Update:
    """Show a piece of a message, a thought or a user's words."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def describe(
    name: str,
    tool_name: str,
    raw: str,
    tool: Tool | None,
    locate: Callable[[str], str],
) -> dict[str, Any]:
    """Say what a client needs to know of a call: what it is, with which input, and where."""
    try:
        value = loads(raw)
    except ToolError:
        value = raw
    arguments = value if isinstance(value, dict) else {}
    described: dict[str, Any] = {"toolCallId": name, "title": tool_name, "kind": "other"}
    if tool is not None:
        described["title"] = tool.spec.title(arguments)
        described["kind"] = tool.spec.kind
        paths = [locate(path) for path in tool.spec.locations(arguments)]
        if paths:
            described["locations"] = [{"path": path} for path in paths]
    return {**described, "rawInput": value}


def call_started(call_id: str) -> Update:
    """Say that a call runs."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "in_progress",
    }


def call_settled(call_id: str, result: ToolResult) -> Update:
    """Show how a call ended."""
    content: list[dict[str, Any]] = [
        {"type": "content", "content": {"type": "text", "text": result.visible}}
    ]
    content += [
        {"type": "content", "content": {"type": "image", **_image(image)}}
        for image in result.images
    ]
    content += [_diff(diff.path, diff.old, diff.new) for diff in result.diffs]
    update: Update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "failed" if result.is_error else "completed",
        "content": content,
    }
    if result.details:
        update["rawOutput"] = dict(result.details)
    return update


def plan(entries: Sequence[Mapping[str, Any]], call_id: str) -> Update:
    """Show the plan as a call left it."""
    return {
        "sessionUpdate": "plan",
        "entries": [dict(entry) for entry in entries],
        "_meta": {"toolCallId": call_id},
    }


def usage(used: int, size: int) -> Update:
    """Say how full the context window is."""
    return {"sessionUpdate": "usage_update", "used": used, "size": size}


def _image(image: Mapping[str, Any]) -> dict[str, Any]:
    return {"mimeType": image["mimeType"], "data": image["data"]}


def _diff(path: str, old: str | None, new: str) -> dict[str, Any]:
    diff: dict[str, Any] = {"type": "diff", "path": path, "newText": new}
    if old is not None:
        diff["oldText"] = old
    return diff
