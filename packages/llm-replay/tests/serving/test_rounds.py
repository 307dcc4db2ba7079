import asyncio
from typing import Any

import pytest
from replay_kit import Request, collect, serving

from llm_replay.chunks import Chunk
from llm_replay.rounds import Block, call, error, fail, hang, raw, round_, say, think


def test_say_is_a_whole_answer_by_itself() -> None:
    assert asyncio.run(collect(serving(say("Final answer.", split=2)).stream(Request()))) == [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": "Final a"},
        {"type": "text-delta", "index": 0, "text": "nswer."},
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": "Final answer."}},
        {"type": "finish", "reason": {"kind": "stop"}},
    ]


def test_a_round_numbers_its_blocks_and_asks_for_tools() -> None:
    answer = round_(
        think("hm"),
        call("call-1", "read", {"path": "a"}, split=0),
        usage={"inputTokens": 8, "outputTokens": 0},
    )

    assert answer["chunks"] == [
        {"type": "block-start", "index": 0, "blockType": "reasoning"},
        {"type": "reasoning-delta", "index": 0, "text": "hm"},
        {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "hm"}},
        {"type": "block-start", "index": 1, "blockType": "tool-call"},
        {
            "type": "block-end",
            "index": 1,
            "block": {
                "type": "tool-call",
                "id": "call-1",
                "name": "read",
                "arguments": '{"path": "a"}',
            },
        },
        {"type": "usage", "usage": {"inputTokens": 8, "outputTokens": 0}},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]


def test_arguments_are_streamed_in_pieces_and_may_be_broken_on_purpose() -> None:
    block = call("c", "edit", '{"a": ', split=3, ended=False)

    assert list(block.chunks(4)) == [
        {"type": "block-start", "index": 4, "blockType": "tool-call"},
        *(
            {
                "type": "tool-call-delta",
                "index": 4,
                "id": "c",
                "name": "edit",
                "argumentsDelta": piece,
            }
            for piece in ('{"', 'a"', ": ")
        ),
    ]


def test_a_call_without_arguments_asks_with_an_empty_object() -> None:
    assert call("c", "ls").block["arguments"] == "{}"


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("max-tokens", [{"type": "finish", "reason": {"kind": "max-tokens"}}]),
        (None, []),
        (
            error("RATE_LIMIT", "slow down", status=429, providerRetryAfterMs=20),
            [
                {
                    "type": "finish",
                    "reason": {
                        "kind": "error",
                        "failure": {
                            "message": "slow down",
                            "code": "RATE_LIMIT",
                            "status": 429,
                            "providerRetryAfterMs": 20,
                        },
                    },
                }
            ],
        ),
    ],
    ids=str,
)
def test_a_round_may_end_in_any_way(finish: str | None, expected: list[object]) -> None:
    assert round_(finish=finish)["chunks"] == expected


def test_a_failure_comes_after_what_was_streamed() -> None:
    assert fail("CONNECT") == {
        "kind": "throw",
        "chunks": [],
        "message": "scripted failure CONNECT",
        "code": "CONNECT",
    }
    assert fail("X", "why", after=say("a", split=0))["chunks"] == list(say("a", split=0).chunks(0))


def test_a_hang_comes_after_blocks_and_chunks_in_their_order() -> None:
    usage: Chunk = {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 1}}
    entry = hang(after=[call("c", "ls"), usage])

    assert entry["kind"] == "hang"
    assert entry["chunks"] == [*call("c", "ls").chunks(0), usage]


def test_raw_keeps_a_malformed_stream_as_it_is() -> None:
    chunks: Any = [{"type": "finish", "reason": {"kind": "stop"}}, {"type": "text-delta"}]

    assert raw(chunks) == {"kind": "chunks", "chunks": chunks}


@pytest.mark.parametrize("split", range(9))
def test_pieces_make_the_whole_text_whatever_their_number(split: int) -> None:
    block: Block = say("abcdefg", split=split)

    pieces = [delta["text"] for delta in block.deltas]
    assert len(pieces) == split
    assert "".join(pieces) == ("abcdefg" if split else "")
    assert max((len(piece) for piece in pieces), default=0) - min(map(len, pieces), default=0) <= 1
