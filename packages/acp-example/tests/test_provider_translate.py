import json
from typing import Any

import pytest
from chat_server import delta

from acp_example.exceptions import ModelError
from acp_example.provider.translate import Translator, token_usage


def chunks_of(*payloads: object) -> list[Any]:
    translator = Translator()
    fed = [chunk for payload in payloads for chunk in translator.feed(json.dumps(payload))]
    return [*fed, *translator.finish()]


def finish_of(*payloads: object) -> Any:  # noqa: ANN401  a JSON value
    return chunks_of(*payloads)[-1]["reason"]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("stop", "stop"),
        ("tool_calls", "tool-calls"),
        ("function_call", "tool-calls"),
        ("length", "max-tokens"),
        ("content_filter", "refusal"),
        (None, "stop"),
        ("", "stop"),
        (7, "stop"),
    ],
)
def test_finish_reason_mapping(word: Any, kind: str) -> None:  # noqa: ANN401  a JSON value
    assert finish_of(delta(word, content="x")) == {"kind": kind}


def test_an_unknown_finish_reason_is_a_failure_of_its_name() -> None:
    assert finish_of(delta("insufficient_system_resource")) == {
        "kind": "error",
        "failure": {
            "code": "INSUFFICIENT_SYSTEM_RESOURCE",
            "message": "the model stopped: insufficient_system_resource",
        },
    }


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_thoughts_come_under_either_name(key: str) -> None:
    first, second, *_ = chunks_of(delta(**{key: "hm"}))

    assert first == {"type": "block-start", "index": 0, "blockType": "reasoning"}
    assert second == {"type": "reasoning-delta", "index": 0, "text": "hm"}


def call(**fields: object) -> dict[str, Any]:
    return delta(tool_calls=[fields])


def calls_in(chunks: list[Any]) -> list[tuple[str, str, str]]:
    blocks = [chunk["block"] for chunk in chunks if chunk["type"] == "block-end"]
    return [(block["id"], block["name"], block["arguments"]) for block in blocks]


def test_calls_that_come_mixed_are_kept_apart_by_their_index() -> None:
    chunks = chunks_of(
        call(index=1, id="b", function={"name": "y", "arguments": "3"}),
        call(index=0, id="a", function={"name": "x"}),
        call(index=1, function={"arguments": "4"}),
        call(index=0, function={"arguments": "12"}),
    )

    assert calls_in(chunks) == [("b", "y", "34"), ("a", "x", "12")]


def test_the_end_closes_blocks_in_opening_order_then_tells_the_latest_usage() -> None:
    early, late = ({"prompt_tokens": n, "completion_tokens": n} for n in (1, 2))

    *_, first, second, usage, finish = chunks_of(
        {**delta(reasoning_content="hm"), "usage": early},
        delta("stop", content="so"),
        {"choices": [], "usage": late},
        {"usage": None},
    )

    assert first == {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "hm"}}
    assert second == {"type": "block-end", "index": 1, "block": {"type": "text", "text": "so"}}
    assert usage == {"type": "usage", "usage": {"inputTokens": 2, "outputTokens": 2}}
    assert finish == {"type": "finish", "reason": {"kind": "stop"}}


@pytest.mark.parametrize("word", ["stop", None])
def test_a_completion_of_nothing_is_a_failure(word: str | None) -> None:
    assert chunks_of(delta(word, content="")) == [
        {
            "type": "finish",
            "reason": {
                "kind": "error",
                "failure": {
                    "code": "EMPTY_RESPONSE",
                    "message": "the model completed a response with no content",
                },
            },
        }
    ]


def test_a_completion_of_nothing_that_was_cut_is_none() -> None:
    assert finish_of(delta("length")) == {"kind": "max-tokens"}


@pytest.mark.parametrize("payload", ["{", "null", "[]"])
def test_what_is_no_object_is_malformed(payload: str) -> None:
    with pytest.raises(ModelError, match="MALFORMED_RESPONSE") as caught:
        list(Translator().feed(payload))

    assert caught.value.message.endswith(f"no JSON object: {payload}")


def test_calls_without_an_index_are_told_apart_by_their_id() -> None:
    chunks = chunks_of(
        call(id="a", function={"name": "x", "arguments": "1"}),
        call(function={"arguments": "2"}),
        call(id="b", function={"name": "y", "arguments": "3"}),
        call(id="b", function={"arguments": "4"}),
    )

    assert calls_in(chunks) == [("a", "x", "12"), ("b", "y", "34")]


def test_calls_that_all_say_index_0_are_told_apart_by_their_id() -> None:
    chunks = chunks_of(
        call(index=0, id="a", function={"name": "x", "arguments": "{}"}),
        call(index=0, id="b", function={"name": "y", "arguments": "{}"}),
    )

    assert calls_in(chunks) == [("a", "x", "{}"), ("b", "y", "{}")]


def test_a_call_that_is_never_named_gets_an_id_of_its_own() -> None:
    chunks = chunks_of(delta(content="x"), call(index=0, function={"name": "ls"}))

    assert chunks[3] == {
        "type": "tool-call-delta",
        "index": 1,
        "id": "",
        "name": "ls",
        "argumentsDelta": "",
    }
    assert chunks[5]["block"] == {
        "type": "tool-call",
        "id": "call-1",
        "name": "ls",
        "arguments": "",
    }


@pytest.mark.parametrize(
    "payload",
    [
        {"choices": None},
        {"choices": [None, 1]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": ["x"], "tool_calls": {"a": 1}}}]},
        {"error": None},
        {},
    ],
)
def test_what_carries_nothing_is_passed_over(payload: object) -> None:
    assert [chunk["type"] for chunk in chunks_of(payload, delta(content="x"))] == [
        "block-start",
        "text-delta",
        "block-end",
        "finish",
    ]


def test_an_empty_payload_is_a_keep_alive() -> None:
    assert list(Translator().feed("")) == []


def test_fields_of_the_wrong_kind_count_as_left_out() -> None:
    assert calls_in(chunks_of(call(index="x", id=5, function=None))) == [("call-0", "", "")]


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        (None, None),
        ("much", None),
        ({}, None),
        ({"prompt_tokens": 3}, {"inputTokens": 3, "outputTokens": 0}),
        ({"prompt_tokens": 0, "completion_tokens": 0}, {"inputTokens": 0, "outputTokens": 0}),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
            {"inputTokens": 5, "outputTokens": 1, "cacheReadTokens": 4},
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 0},
                "prompt_cache_hit_tokens": 4,
            },
            {"inputTokens": 9, "outputTokens": 1, "cacheReadTokens": 0},
        ),
        (
            {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}},
            {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 4},
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 0}},
            {"inputTokens": 0, "outputTokens": 5, "reasoningTokens": 0},
        ),
        (
            {"prompt_tokens": True, "completion_tokens": -1, "prompt_tokens_details": []},
            None,
        ),
    ],
)
def test_cache_reads_are_not_counted_as_input(wire: object, usage: object) -> None:
    assert token_usage(wire) == usage


def test_half_a_surrogate_pair_passes_through() -> None:
    translator = Translator()

    chunks: list[Any] = list(translator.feed('{"choices":[{"delta":{"content":"\\ud83d"}}]}'))

    assert chunks[1]["text"] == "\ud83d"
