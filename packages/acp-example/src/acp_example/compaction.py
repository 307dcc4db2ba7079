"""When a history is summarised, what the summariser reads, and what is kept. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_example.session import Conversation, Event, Node
from acp_example.settings import Compaction

SYSTEM: Final = (
    "You summarise the working history of a coding agent, so that it can go on without it. "
    "Say what the user wants, what was done and found, which files matter, and what is left to "
    "do. Keep names, paths, commands and numbers exactly. Answer with the summary alone."
)
_INTRODUCTION: Final = "Summary of the conversation so far, which is no longer shown:\n\n"
_FEWEST: Final = 4


def due(conversation: Conversation, settings: Compaction, window: int | None) -> int | None:
    """Return the token count that makes a summary due; None if it is not.

    Without a reported usage nothing is guessed.
    """
    tokens = conversation.context_tokens
    if tokens is None or window is None or settings.threshold is None:
        return None
    if len(conversation.nodes) < _FEWEST or tokens < settings.threshold * window:
        return None
    return tokens


def request_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what the summariser is asked: one message that holds the whole history."""
    text = transcript(messages)
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def transcript(messages: Sequence[Mapping[str, Any]]) -> str:
    """Write a history down for a reader: who said what, which tools ran, what they gave."""
    parts = [_part(message["role"], block) for message in messages for block in message["content"]]
    return "\n\n".join(part for part in parts if part)


def summary_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the summary that an answer holds; empty if it says nothing."""
    return "".join(block["text"] for block in blocks if block["type"] == "text").strip()


def summary_message(message_id: str, summary: str) -> dict[str, Any]:
    """Return the message that stands for the history from now on."""
    return {
        "id": message_id,
        "role": "user",
        "content": [{"type": "text", "text": _INTRODUCTION + summary}],
        "source": {"kind": "compaction"},
    }


def kept(nodes: Sequence[Node], budget: int) -> list[dict[str, Any]]:
    """Return what the user said last, in order, as far as the budget of characters goes.

    The newest message is kept even where it alone is over the budget.
    """
    messages: list[dict[str, Any]] = []
    spent = 0
    for node in reversed(nodes):
        if not _from_user(node.message):
            continue
        spent += sum(len(block.get("text", "")) for block in node.message["content"])
        if messages and spent > budget:
            break
        source = {"kind": "compaction", "kept": True}
        messages.append({**node.message, "source": source})
    return messages[::-1]


def repair(conversation: Conversation, budget: int) -> list[Event]:
    """End a compaction that a crash cut off and return the events that do it.

    Where the summary has taken the history's place already, what the user said last follows it;
    otherwise the history stays as it was.
    """
    before, begun = conversation.compacting, len(conversation.events)
    if before is None:
        return []
    turn, time = conversation.open_turn, conversation.events[-1]["time"]
    if conversation.nodes == before:
        error = {"message": "the session was interrupted", "code": "ABORTED"}
        conversation.record("compaction/end", {"turn": turn, "error": error})
    else:
        copies = kept(before, budget)
        for copy in copies[len(conversation.nodes) - 1 :]:
            conversation.record("user/message", copy, surfaceOp="append")
        removed = len(before) - len(copies)
        data = {"turn": turn, "kept": len(copies), "removed": removed}
        conversation.record("compaction/end", data)
    for event in conversation.events[begun:]:
        event["time"] = time
    return conversation.events[begun:]


def _from_user(message: Mapping[str, Any]) -> bool:
    source = message.get("source", {})
    return source.get("kind") == "user" or bool(source.get("kept"))


def _part(role: str, block: Mapping[str, Any]) -> str:
    match block["type"]:
        case "text":
            return f"{role}: {block['text']}"
        case "reasoning":
            return f"{role} (thinking): {block['text']}"
        case "tool-call":
            return f"tool call {block['name']}: {block['arguments']}"
        case "tool-result":
            outcome = "failed" if block["isError"] else "result"
            inner = "\n".join(part.get("text", "[image]") for part in block["content"])
            return f"tool {outcome}: {inner}"
        case kind:
            return f"{role}: [{kind}]"
