import pytest
from loop_bench import Json

from acp_example.assembly import Assembler

CALL = {"type": "tool-call", "id": "c", "name": "look", "arguments": "{}"}


def assembled(*chunks: Json) -> Assembler:
    made = Assembler()
    for chunk in chunks:
        made.push(chunk)
    return made


def finish(kind: str, state: Json = None) -> Json:
    chunk: Json = {"type": "finish", "reason": {"kind": kind}}
    return {**chunk, "replayState": state} if state is not None else chunk


def test_replay_state_keeps_the_entries_of_the_blocks_that_are_kept() -> None:
    text = {"type": "text-delta", "index": 0, "text": "a"}
    call = {"type": "block-end", "index": 1, "block": CALL}
    state = {"response": "r", "blocks": ["of the text", "of the call"]}

    cut = assembled(text, call, finish("max-tokens", state))
    whole = assembled(text, call, finish("tool-calls", state))

    assert cut.replay_state() == {"response": "r", "blocks": ["of the text"]}
    assert whole.replay_state() == state


def test_replay_state_of_the_wrong_length_is_dropped() -> None:
    assert assembled(finish("stop", {"response": "r", "blocks": ["extra"]})).replay_state() is None


def test_replay_state_without_blocks_is_kept_as_it_is() -> None:
    assert assembled(finish("stop", {"response": "r"})).replay_state() == {"response": "r"}
    assert assembled(finish("stop")).replay_state() is None
    assert assembled().replay_state() is None


def test_later_name_of_a_call_wins_and_an_empty_one_does_not() -> None:
    delta: Json = {"type": "tool-call-delta", "index": 0, "id": "c", "argumentsDelta": "{"}
    made = assembled(
        {**delta, "name": "first"}, {**delta, "name": ""}, {**delta, "name": "last"}, delta
    )

    assert made.blocks() == [{**CALL, "name": "last", "arguments": "{{{{"}]


def test_assembly_of_what_was_assembled_changes_nothing() -> None:
    reasoning: Json = {"type": "reasoning", "text": "so"}
    made = assembled(
        {"type": "reasoning-delta", "index": 0, "text": "s"},
        {"type": "text-delta", "index": 1, "text": "a"},
        {"type": "reasoning-delta", "index": 0, "text": "o"},
        {"type": "tool-call-delta", "index": 2, "id": "c", "name": "look", "argumentsDelta": "{}"},
        {"type": "text-delta", "index": 1, "text": "b"},
    )

    blocks = made.blocks()

    assert blocks == [reasoning, {"type": "text", "text": "ab"}, CALL]
    assert made.blocks() == blocks
    whole = [
        part
        for index, block in enumerate(blocks)
        for part in (
            {"type": "block-start", "index": index, "blockType": block["type"]},
            {"type": "block-end", "index": index, "block": block},
        )
    ]
    assert assembled(*whole).blocks() == blocks


def test_open_block_of_a_type_without_deltas_cannot_be_assembled() -> None:
    made = assembled({"type": "block-start", "index": 0, "blockType": "image"})

    with pytest.raises(ValueError, match="an open block of type 'image' can't be assembled"):
        made.blocks()


def test_chunk_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="no chunk has the type 'nope'"):
        assembled({"type": "nope"})
