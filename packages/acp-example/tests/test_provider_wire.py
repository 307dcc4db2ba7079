import pytest
from chat_server import Exchange, delta, events, streamed

BODY = events(
    delta(reasoning_content="thinking …"),
    delta(content="Grüße, "),
    delta(content="世界 🌍"),
    delta(
        tool_calls=[
            {"index": 0, "id": "call_0", "function": {"name": "bash", "arguments": '{"comm'}}
        ]
    ),
    delta(tool_calls=[{"index": 0, "function": {"arguments": 'and": "ls é"}'}}]),
    delta("tool_calls"),
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    },
)
CALL = {"id": "call_0", "name": "bash"}
CHUNKS = [
    {"type": "block-start", "index": 0, "blockType": "reasoning"},
    {"type": "reasoning-delta", "index": 0, "text": "thinking …"},
    {"type": "block-start", "index": 1, "blockType": "text"},
    {"type": "text-delta", "index": 1, "text": "Grüße, "},
    {"type": "text-delta", "index": 1, "text": "世界 🌍"},
    {"type": "block-start", "index": 2, "blockType": "tool-call"},
    {"type": "tool-call-delta", "index": 2, **CALL, "argumentsDelta": '{"comm'},
    {"type": "tool-call-delta", "index": 2, **CALL, "argumentsDelta": 'and": "ls é"}'},
    {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "thinking …"}},
    {"type": "block-end", "index": 1, "block": {"type": "text", "text": "Grüße, 世界 🌍"}},
    {
        "type": "block-end",
        "index": 2,
        "block": {"type": "tool-call", **CALL, "arguments": '{"command": "ls é"}'},
    },
    {
        "type": "usage",
        "usage": {
            "inputTokens": 4,
            "outputTokens": 9,
            "cacheReadTokens": 16,
            "reasoningTokens": 4,
        },
    },
    {"type": "finish", "reason": {"kind": "tool-calls"}},
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 4096])
def test_an_answer_survives_any_cut_of_the_stream(exchange: Exchange, size: int) -> None:
    pieces = [BODY[start : start + size] for start in range(0, len(BODY), size)]

    outcome = exchange(streamed(*pieces))

    assert outcome.error is None
    assert outcome.chunks == CHUNKS
