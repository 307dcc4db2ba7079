"""A model request to the JSON body of a chat completion. No I/O."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from acp_example.llm import ModelRequest
from acp_example.provider.config import Config, Model

_TURNED_OFF: Final = "off"
_OMITTED: Final = "[an image, left out: this model reads text only]"


def encode_body(request: ModelRequest, config: Config) -> bytes:
    """Return the request body as it goes over the wire.

    Half a surrogate pair has no UTF-8 form and becomes a question mark.
    """
    body = chat_body(request, config)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def chat_body(request: ModelRequest, config: Config) -> dict[str, Any]:
    """Return the request body: the conversation, the tools and how to answer."""
    model = config.model_named(request.model)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": chat_messages(request, model=model, reasoning=config.send_reasoning),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        choice = request.tool_choice or _first_step_choice(request, config)
        if choice is not None:
            body["tool_choice"] = _tool_choice(choice)
    if model.max_output_tokens is not None:
        body["max_tokens"] = model.max_output_tokens
    return body | _effort(request, model=model, config=config) | config.body


def chat_messages(
    request: ModelRequest, *, model: Model, reasoning: bool = True
) -> list[dict[str, Any]]:
    """Return the conversation: the system prompt first, each result after its message's text."""
    images = "image" in model.input_modalities
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    for message in request.messages:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        if message["role"] == "assistant":
            messages.append(_assistant(blocks, reasoning=reasoning))
        else:
            messages.extend(_incoming(message["role"], blocks, images=images))
    return messages


def _assistant(blocks: Sequence[Mapping[str, Any]], *, reasoning: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _joined(blocks, "text")}
    thoughts = _joined(blocks, "reasoning")
    if thoughts and reasoning:
        message["reasoning_content"] = thoughts
    calls = [_call(block) for block in blocks if block["type"] == "tool-call"]
    if calls:
        message["tool_calls"] = calls
    return message


def _incoming(
    role: str, blocks: Sequence[Mapping[str, Any]], *, images: bool
) -> Iterable[dict[str, Any]]:
    """Yield what a user or a tool said; the images of a result follow as a user's message."""
    results = [block for block in blocks if block["type"] == "tool-result"]
    content = _content([block for block in blocks if block not in results], images=images)
    if content:
        yield {"role": "system" if role == "system" else "user", "content": content}
    shown: list[Mapping[str, Any]] = []
    for result in results:
        inner = result["content"]
        pictures = [block for block in inner if block["type"] == "image"] if images else []
        texts = [block for block in inner if block not in pictures]
        shown += pictures
        yield {
            "role": "tool",
            "tool_call_id": result["toolCallId"],
            "content": _content(texts, images=False),
        }
    if shown:
        yield {"role": "user", "content": _content(shown, images=True)}


def _content(blocks: Sequence[Mapping[str, Any]], *, images: bool) -> str | list[dict[str, Any]]:
    if not (images and any(block["type"] == "image" for block in blocks)):
        return _joined(blocks, "text", omitted=_OMITTED)
    return [_part(block) for block in blocks]


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] != "image":
        return {"type": "text", "text": block.get("text", "")}
    picture = block["attachment"]
    url = f"data:{picture['mimeType']};base64,{picture['data']}"
    return {"type": "image_url", "image_url": {"url": url}}


def _joined(blocks: Iterable[Mapping[str, Any]], kind: str, *, omitted: str = "") -> str:
    texts = [
        block["text"] if block["type"] == kind else omitted
        for block in blocks
        if block["type"] == kind or (omitted and block["type"] == "image")
    ]
    return "\n".join(texts)


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    # An empty argument string means no arguments, which servers want to see spelled out.
    function = {"name": block["name"], "arguments": block["arguments"].strip() or "{}"}
    return {"id": block["id"], "type": "function", "function": function}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["schema"],
    }
    return {"type": "function", "function": function}


def _first_step_choice(request: ModelRequest, config: Config) -> str | None:
    """Return the configured choice where the user spoke last.

    A choice that forces a call must not outlive the first step: the turn would never end.
    """
    if config.tool_choice in {"auto", "none", None}:
        return config.tool_choice
    last = request.messages[-1]["content"] if request.messages else ""
    answered = not isinstance(last, str) and any(b["type"] == "tool-result" for b in last)
    return None if answered else config.tool_choice


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


def _effort(request: ModelRequest, *, model: Model, config: Config) -> dict[str, Any]:
    effort = request.reasoning_effort
    if request.purpose != "turn" and model.reasoning_efforts:
        effort = _TURNED_OFF  # a summary needs no thoughts, and nobody would read them
    if effort is None:
        return {}
    if config.effort_style == "reasoning_effort":
        return {} if effort == _TURNED_OFF else {"reasoning_effort": effort}
    if effort == _TURNED_OFF:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled"}, "reasoning_effort": effort}
