from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_example.grammar import StreamGrammarError, StreamReader

PIECES: list[dict[str, Any]] = [
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "block-start", "index": 1, "blockType": "tool-call"},
    {"type": "text-delta", "index": 0, "text": "hi"},
    {"type": "reasoning-delta", "index": 2, "text": "hm"},
    {"type": "tool-call-delta", "index": 1, "id": "c", "name": "look", "argumentsDelta": "{}"},
    {"type": "block-end", "index": 0, "block": {"type": "text", "text": "hi"}},
    {
        "type": "block-end",
        "index": 1,
        "block": {"type": "tool-call", "id": "c", "name": "look", "arguments": "{}"},
    },
    {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 1}},
    {"type": "finish", "reason": {"kind": "stop"}},
    {"type": "finish", "reason": {"kind": "max-tokens"}},
    {"type": "odd"},
    {"type": "block-end"},
]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_any_stream_is_read_or_refused_and_never_crashes(chunks: list[dict[str, Any]]) -> None:
    reader = StreamReader()
    code = ""

    try:
        for chunk in chunks:
            reader.read(chunk)
        reader.close()
    except StreamGrammarError as error:
        code = error.code

    assert code.startswith("STREAM_") or reader.assembler.blocks() == reader.assembler.blocks()
