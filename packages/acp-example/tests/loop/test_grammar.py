from collections.abc import Mapping
from typing import Any

import pytest
from loop_bench import FakeTool, Make

from llm_replay.scripted_model import call, raw, round_, say, think

TEXT = {"type": "block-start", "index": 0, "blockType": "text"}
DELTA = {"type": "text-delta", "index": 0, "text": "hi"}
END = {"type": "block-end", "index": 0, "block": {"type": "text", "text": "hi"}}
USAGE = {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 1}}
STOP = {"type": "finish", "reason": {"kind": "stop"}}


def call_end(call_id: str, name: str = "look", index: int = 0) -> dict[str, Any]:
    block = {"type": "tool-call", "id": call_id, "name": name, "arguments": "{}"}
    return {"type": "block-end", "index": index, "block": block}


def call_start(index: int = 0) -> dict[str, Any]:
    return {"type": "block-start", "index": index, "blockType": "tool-call"}


VIOLATIONS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no finish": (
        [TEXT, DELTA, END],
        "STREAM_NO_FINISH",
        "the model's stream ended without a finish",
    ),
    "no chunk": ([], "STREAM_EMPTY", "the model's stream had no chunk at all"),
    "chunk after finish": (
        [TEXT, DELTA, END, STOP, DELTA],
        "STREAM_CHUNK_AFTER_FINISH",
        "a 'text-delta' chunk came after the finish",
    ),
    "second finish": (
        [TEXT, DELTA, END, STOP, STOP],
        "STREAM_CHUNK_AFTER_FINISH",
        "a 'finish' chunk came after the finish",
    ),
    "second usage": (
        [TEXT, DELTA, END, USAGE, USAGE, STOP],
        "STREAM_SECOND_USAGE",
        "usage was reported twice",
    ),
    "delta to closed block": (
        [TEXT, DELTA, END, DELTA, STOP],
        "STREAM_DELTA_AFTER_END",
        "a 'text-delta' chunk came for block 0, closed",
    ),
    "wrong block type of a delta": (
        [TEXT, {"type": "reasoning-delta", "index": 0, "text": "x"}, STOP],
        "STREAM_WRONG_BLOCK_TYPE",
        "a 'reasoning-delta' chunk came for block 0, which is 'text'",
    ),
    "wrong block type of an end": (
        [TEXT, call_end("c"), STOP],
        "STREAM_WRONG_BLOCK_TYPE",
        "block 0 started as 'text' and ended as 'tool-call'",
    ),
    "duplicate start": (
        [TEXT, DELTA, TEXT, STOP],
        "STREAM_DUPLICATE_START",
        "block 0 was started twice",
    ),
    "duplicate end": ([TEXT, DELTA, END, END, STOP], "STREAM_DUPLICATE_END", "block 0 ended twice"),
    "end without start": (
        [END, STOP],
        "STREAM_END_WITHOUT_START",
        "block 0 ended and was never started",
    ),
    "text that differs from its deltas": (
        [TEXT, {**DELTA, "text": "ho"}, END, STOP],
        "STREAM_MISMATCH",
        "the deltas of block 0 don't join to the text it ended with",
    ),
    "unknown chunk": (
        [{"type": "nope"}, STOP],
        "STREAM_UNKNOWN_CHUNK",
        "no chunk has the type 'nope'",
    ),
    "malformed chunk": (
        [{"type": "text-delta", "text": "x"}, STOP],
        "STREAM_MALFORMED_CHUNK",
        "a 'text-delta' chunk lacks a part: 'index'",
    ),
    "call without id": (
        [call_start(), call_end(""), STOP],
        "STREAM_CALL_WITHOUT_ID",
        "a call of 'look' has no id",
    ),
    "call without name": (
        [call_start(), call_end("c", ""), STOP],
        "STREAM_CALL_WITHOUT_NAME",
        "the call 'c' names no tool",
    ),
    "duplicate call id": (
        [call_start(), call_end("c"), call_start(1), call_end("c", index=1), STOP],
        "STREAM_DUPLICATE_CALL_ID",
        "two calls of one step have the id 'c'",
    ),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_stream_grammar_violations(bench: Make, case: str) -> None:
    chunks, code, message = VIOLATIONS[case]
    tool = FakeTool("look")
    agent = bench(raw(chunks), say("usable"), tools=[tool])  # type: ignore[arg-type] # malformed on purpose

    outcome = agent.prompt()

    assert (outcome.code, outcome.message) == (code, message)
    assert tool.started == []
    assert agent.of("assistant/message") == []
    assert agent.prompt().stop_reason == "end_turn"


def test_open_text_block_at_finish_is_protocol_error(bench: Make) -> None:
    agent = bench(round_(say("orphan", ended=False)), say("usable"))

    outcome = agent.prompt()

    assert outcome.code == "STREAM_UNCOMMITTED_TEXT"
    assert outcome.message == "the finish came while text block 0 was still open"
    assert agent.roles() == ["user: text"]
    assert agent.prompt().stop_reason == "end_turn"


def test_open_reasoning_block_at_finish_is_protocol_error(bench: Make) -> None:
    agent = bench(round_(think("hm", ended=False)))

    assert agent.prompt().message == "the finish came while reasoning block 0 was still open"


@pytest.mark.parametrize(
    "blocks",
    [
        [call("c", "look", "{}", ended=False)],
        [call("a", "look"), call("b", "look", "{}", ended=False)],
    ],
    ids=["one open", "two opened, one closed"],
)
def test_open_tool_block_at_finish_is_protocol_error(bench: Make, blocks: list[Any]) -> None:
    tool = FakeTool("look")
    agent = bench(round_(*blocks), tools=[tool])

    outcome = agent.prompt()

    assert outcome.code == "STREAM_UNCOMMITTED_CALL"
    where = len(blocks) - 1
    assert outcome.message == f"the finish came while tool call block {where} was still open"
    assert tool.started == []


def test_call_id_may_come_again_in_a_later_step(bench: Make) -> None:
    async def echo(given: Mapping[str, Any], _context: object) -> str:
        return f"seen {given['n']}"

    agent = bench(
        call("call_0", "look", {"n": 1}),
        call("call_0", "look", {"n": 2}),
        say("ok"),
        tools=[FakeTool("look", echo)],
    )

    assert agent.prompt().stop_reason == "end_turn"
    assert [
        (block["toolCallId"], block["content"][0]["text"]) for block in agent.result_blocks()
    ] == [
        ("call_0", "seen 1"),
        ("call_0", "seen 2"),
    ]
    assert agent.roles()[1:5] == ["assistant: tool-call", "user: tool-result"] * 2


def test_delta_opens_a_block_by_itself(bench: Make) -> None:
    agent = bench(raw([DELTA, END, STOP]))  # type: ignore[list-item] # plain objects

    assert agent.prompt().text == "hi"


def test_violating_chunk_is_in_the_log_and_what_follows_is_not(bench: Make) -> None:
    agent = bench(raw([TEXT, DELTA, TEXT, END, STOP]))  # type: ignore[list-item] # as above

    agent.prompt()

    assert [data["chunk"] for data in agent.of("assistant/chunk")] == [TEXT, DELTA, TEXT]
