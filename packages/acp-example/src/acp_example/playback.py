"""A loaded session, told to a client as if it had watched. No I/O."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from acp_example import updates
from acp_example.session import Event
from acp_example.tools import Tool, ToolResult

_SHOWN: Final = {"text": "agent_message_chunk", "reasoning": "agent_thought_chunk"}

Updates = Iterable[dict[str, Any]]


class Playback:
    """Turns a log's events into updates: what was said, thought and done, in order."""

    def __init__(self, *, tool: Callable[[str], Tool | None], locate: Callable[[str], str]) -> None:
        self._tool = tool
        self._locate = locate
        self._calls: dict[tuple[int, int, str], str] = {}
        self._position = (0, 0, 0)
        self._asked: list[Mapping[str, Any]] = []

    def updates(self, events: Iterable[Event]) -> Updates:
        """Yield the updates of a whole log."""
        for event in events:
            data = event["data"]
            match event["type"]:
                case "user/message" if data["source"]["kind"] == "user":
                    yield from self._said(data)
                case "assistant/message":
                    yield from self._answered(data["message"])
                case "tool/call":
                    yield self._called(data)
                case "tool/result":
                    yield from self._settled(data)
                case _:
                    pass  # Nothing that a client sees.

    def _said(self, message: Mapping[str, Any]) -> Updates:
        for block in message["content"]:
            if block["type"] == "text":
                yield updates.text_chunk("user_message_chunk", block["text"])
            else:
                image = {"type": "image", **block["attachment"]}
                yield {"sessionUpdate": "user_message_chunk", "content": image}

    def _answered(self, message: Mapping[str, Any]) -> Updates:
        self._asked = [block for block in message["content"] if block["type"] == "tool-call"]
        for block in message["content"]:
            if block["type"] in _SHOWN and block["text"].strip():
                yield updates.text_chunk(_SHOWN[block["type"]], block["text"])

    def _called(self, data: Mapping[str, Any]) -> dict[str, Any]:
        turn, step, call_id = data["turn"], data["step"], data["callId"]
        place = self._position[2] + 1 if self._position[:2] == (turn, step) else 1
        self._position = (turn, step, place)
        name = self._calls[turn, step, call_id] = f"{turn}.{step}.{place}"
        return {
            "sessionUpdate": "tool_call",
            **updates.describe(
                name, data["name"], data["arguments"], self._tool(data["name"]), self._locate
            ),
            "status": "pending",
        }

    def _settled(self, data: Mapping[str, Any]) -> Updates:
        block = data["message"]["content"][0]
        turn, step, call_id = data["turn"], data["step"], block["toolCallId"]
        for call in self._asked:
            if call["id"] == call_id and (turn, step, call_id) not in self._calls:
                # A crash came before the call was logged as begun.
                named = {"name": call["name"], "arguments": call["arguments"]}
                yield self._called({"turn": turn, "step": step, "callId": call_id, **named})
        texts = [part["text"] for part in block["content"] if part["type"] == "text"]
        images = [part["attachment"] for part in block["content"] if part["type"] == "image"]
        meta = dict(data.get("meta", {}))
        plan = meta.pop("plan", None)
        result = ToolResult(
            text="".join(texts),
            is_error=block["isError"],
            images=images,
            details=meta,
        )
        if (name := self._calls.get((turn, step, call_id))) is not None:
            if plan is not None:
                yield updates.plan(plan, name)
            yield updates.call_settled(name, result)
