from typing import Any

import pytest

from acp_example import compaction
from acp_example.session import Conversation, Node
from acp_example.settings import Compaction


def text(content: str, *, role: str = "user", kind: str = "user") -> dict[str, Any]:
    return {
        "id": content[:8],
        "role": role,
        "content": [{"type": "text", "text": content}],
        "source": {"kind": kind},
    }


def nodes(*messages: dict[str, Any]) -> list[Node]:
    return [Node(seq, message) for seq, message in enumerate(messages)]


def conversation(count: int, tokens: int | None) -> Conversation:
    made = Conversation(now=lambda: 0, new_id=lambda: "id")
    made.nodes = nodes(*[text(f"message {n}") for n in range(count)])
    made.context_tokens = tokens
    return made


def test_compaction_needs_a_reported_usage() -> None:
    assert compaction.due(conversation(9, None), Compaction(), 1000) is None


def test_compaction_is_not_due_below_the_threshold() -> None:
    assert compaction.due(conversation(9, 799), Compaction(), 1000) is None


def test_compaction_is_not_due_for_a_short_history() -> None:
    assert compaction.due(conversation(3, 900), Compaction(), 1000) is None


def test_compaction_is_due_at_the_threshold() -> None:
    assert compaction.due(conversation(4, 800), Compaction(), 1000) == 800


@pytest.mark.parametrize(
    ("settings", "size"), [(Compaction(), None), (Compaction(threshold=None), 1000)]
)
def test_compaction_can_be_turned_off_and_needs_a_known_window(
    settings: Compaction, size: int | None
) -> None:
    assert compaction.due(conversation(9, 900), settings, size) is None


def test_compaction_transcript_renders_every_kind_readably() -> None:
    result = {
        "type": "tool-result",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "seen"}, {"type": "image", "attachment": {}}],
        "isError": False,
    }
    failed = {**result, "content": [{"type": "text", "text": "gone"}], "isError": True}
    messages = [
        text("look at it"),
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "I should"},
                {"type": "text", "text": "Looking"},
                {"type": "tool-call", "id": "c", "name": "look", "arguments": '{"at": 1}'},
            ],
        },
        {"role": "user", "content": [result]},
        {"role": "user", "content": [failed]},
        {"role": "user", "content": [{"type": "image", "attachment": {}}]},
    ]

    assert compaction.transcript(messages) == (
        "user: look at it\n\n"
        "assistant (thinking): I should\n\n"
        "assistant: Looking\n\n"
        'tool call look: {"at": 1}\n\n'
        "tool result: seen\n[image]\n\n"
        "tool failed: gone\n\n"
        "user: [image]"
    )


def test_compaction_always_keeps_the_newest_user_message() -> None:
    kept = compaction.kept(nodes(text("a" * 10), text("b" * 100)), 50)

    assert [message["content"][0]["text"] for message in kept] == ["b" * 100]


def test_compaction_drops_older_user_messages_beyond_the_budget() -> None:
    history = nodes(
        text("oldest"), text("answer", role="assistant", kind="model"), text("old"), text("new")
    )

    kept = compaction.kept(history, 7)

    assert [message["content"][0]["text"] for message in kept] == ["old", "new"]
