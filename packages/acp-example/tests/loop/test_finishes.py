from typing import Any

import pytest
from loop_bench import FakeTool, Json, Make

from llm_replay.scripted_model import Block, call, error, raw, round_, say, think
from llm_replay.seam import RetryPolicy

BLANK = [
    ("no blocks", [], 2),
    ("blank", [say(" \n\t ", split=2)], 2),
    # What the client has seen can't be recalled, so these thoughts rule out another attempt.
    ("reasoning only", [think("hm")], 1),
]


@pytest.mark.parametrize(("_case", "blocks", "requests"), BLANK, ids=[case[0] for case in BLANK])
def test_empty_final_response(bench: Make, _case: str, blocks: list[Block], requests: int) -> None:
    agent = bench(*[round_(*blocks, finish="stop")] * requests)
    agent.clock.auto = True
    agent.model.retry_policy = RetryPolicy(max_retries=1)

    outcome = agent.prompt()

    assert outcome.code == "EMPTY_RESPONSE"
    assert outcome.message == "the model answered with nothing that can be shown"
    assert len(agent.model.requests) == requests
    assert agent.roles() == ["user: text"]
    assert agent.of("assistant/message") == []
    assert agent.client.text() == []


def test_blank_answer_is_tried_again_and_the_client_never_saw_it(bench: Make) -> None:
    agent = bench(round_(say(" \n"), finish="stop"), say("\n\nhello", split=4))
    agent.clock.auto = True

    assert agent.prompt().stop_reason == "end_turn"
    assert "".join(agent.client.text()) == "\n\nhello"
    assert agent.client.text()[0] == "\n\nhe"


FINISHES: list[tuple[str, Any, str | None, str | None]] = [
    ("stop", "stop", "end_turn", None),
    ("tool-calls", "tool-calls", "end_turn", None),
    ("a kind from later", "pause", "end_turn", None),
    ("max-tokens", "max-tokens", "max_tokens", None),
    ("refusal", "refusal", "refusal", None),
    ("error", error("QUOTA", "no money"), None, "QUOTA"),
    (
        "aborted",
        {"kind": "aborted", "failure": {"message": "gone", "code": "ABORTED"}},
        None,
        "ABORTED",
    ),
]


@pytest.mark.parametrize(
    ("_case", "finish", "stop_reason", "code"), FINISHES, ids=[case[0] for case in FINISHES]
)
def test_finish_reason_mapping(
    bench: Make, _case: str, finish: Json, stop_reason: str | None, code: str | None
) -> None:
    agent = bench(round_(say("text"), finish=finish), say("next turn"))

    outcome = agent.prompt()

    assert (outcome.stop_reason, outcome.code) == (stop_reason, code)
    kept = ["user: text", "assistant: text"] if stop_reason else ["user: text"]
    assert agent.roles() == kept
    assert outcome.text == ("text" if stop_reason else "")
    assert agent.prompt().stop_reason == "end_turn"


@pytest.mark.parametrize("finish", ["max-tokens", "refusal"])
@pytest.mark.parametrize("ended", [True, False], ids=["closed call", "open call"])
def test_calls_of_a_cut_answer_never_run(bench: Make, finish: str, *, ended: bool) -> None:
    tool = FakeTool("look")
    agent = bench(
        round_(say("I will"), call("c", "look", "{}", ended=ended), finish=finish),
        say("next"),
        tools=[tool],
    )

    agent.prompt()

    assert tool.started == []
    assert agent.of("tool/call") == []
    assert agent.roles() == ["user: text", "assistant: text"]
    assert agent.prompt().stop_reason == "end_turn"


def test_cut_answer_without_any_text_leaves_no_blank_message(bench: Make) -> None:
    agent = bench(
        round_(finish="max-tokens", usage={"inputTokens": 9, "outputTokens": 0}), say("next")
    )

    assert agent.prompt().stop_reason == "max_tokens"
    assert agent.roles() == ["user: text"]
    assert agent.of("assistant/message")[0]["usage"] == {"inputTokens": 9, "outputTokens": 0}
    agent.prompt()


def test_calls_run_even_where_the_finish_says_stop(bench: Make) -> None:
    tool = FakeTool("look")
    agent = bench(round_(call("c", "look"), finish="stop"), say("ok"), tools=[tool])

    agent.prompt()

    assert len(tool.started) == 1


def test_reasoning_is_carried_to_the_next_request_intact(bench: Make) -> None:
    agent = bench(
        round_(think("because", split=3), say("I look"), call("c", "look")),
        say("ok"),
        tools=[FakeTool("look")],
    )

    agent.prompt()

    assert agent.model.requests[1].messages[1]["content"][0] == {
        "type": "reasoning",
        "text": "because",
    }
    assert "".join(agent.client.text("agent_thought_chunk")) == "because"


def test_interleaved_blocks_assemble_by_index(bench: Make) -> None:
    chunks: list[Any] = [
        {"type": "block-start", "index": 0, "blockType": "reasoning"},
        {"type": "reasoning-delta", "index": 0, "text": "so"},
        {"type": "block-start", "index": 1, "blockType": "text"},
        {"type": "text-delta", "index": 1, "text": "he"},
        {"type": "reasoning-delta", "index": 0, "text": " what"},
        {"type": "text-delta", "index": 1, "text": "llo"},
        {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "so what"}},
        {"type": "block-end", "index": 1, "block": {"type": "text", "text": "hello"}},
        {"type": "finish", "reason": {"kind": "stop"}},
    ]
    agent = bench(raw(chunks))

    agent.prompt()

    assert agent.history[1]["content"] == [
        {"type": "reasoning", "text": "so what"},
        {"type": "text", "text": "hello"},
    ]
