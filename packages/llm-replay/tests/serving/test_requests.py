from typing import Any

import pytest
from replay_kit import Request

from llm_replay.requests import extension_problems, pairing_problems, snapshot


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def calls(*ids: object) -> dict[str, Any]:
    blocks = [{"type": "tool-call", "id": call, "name": "ls", "arguments": ""} for call in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "…"}, *blocks]}


def result(*ids: object) -> dict[str, Any]:
    blocks = [{"type": "tool-result", "toolCallId": call, "content": []} for call in ids]
    return {"role": "tool", "content": blocks}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("hi")],
        [{"role": "user", "content": "hi"}],
        [user("hi"), calls(), user("more")],
        [calls("a", "b"), result("a"), result("b")],
        [calls("a", "b"), result("a", "b"), calls("c"), result("c")],
        [calls("a"), result("a"), calls("a"), result("a")],
        [calls("a"), user("between"), result("a")],
    ],
    ids=str,
)
def test_calls_that_are_answered_in_order_are_as_they_must_be(messages: list[Any]) -> None:
    assert pairing_problems(messages) == []


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        ([calls("a")], ["messages[0]: call 'a' has no result"]),
        (
            [user("hi"), calls("a", "b"), result("b"), calls()],
            [
                "messages[2]: the result of 'b' stands before that of 'a'",
                "messages[1]: call 'a' has no result",
            ],
        ),
        ([result("a")], ["messages[0]: a result answers 'a', which no call before it asked"]),
        (
            [result("a"), calls("a"), result("a")],
            ["messages[0]: a result answers 'a', which no call before it asked"],
        ),
        ([calls("a"), result("a", "a")], ["messages[1]: a second result answers 'a'"]),
        (
            [calls("a"), result("a"), calls("b"), result("a", "b")],
            ["messages[3]: a result answers 'a', which no call before it asked"],
        ),
        ([calls(""), result("")], ["messages[0]: a call has no id"]),
        ([calls(None), result(None)], ["messages[0]: a call has no id"]),
        (
            [calls("a", "a"), result("a", "a")],
            ["messages[0]: the call id 'a' is there twice"],
        ),
    ],
    ids=str,
)
def test_what_does_not_match_is_told_with_its_place(
    messages: list[Any], problems: list[str]
) -> None:
    assert pairing_problems(messages) == problems


@pytest.mark.parametrize("later", [[], [user("b")]], ids=str)
def test_a_history_may_stay_or_grow(later: list[Any]) -> None:
    assert extension_problems([user("a")], [user("a"), *later]) == []


def test_a_history_that_lost_or_changed_a_message_is_told() -> None:
    assert extension_problems([user("a"), user("b")], [user("a")]) == [
        "messages[1]: was there in the request before, and is gone"
    ]
    assert extension_problems([user("a"), user("b")], [user("a"), user("c"), user("d")]) == [
        "messages[1]: differs from the request before, which it must extend"
    ]


def test_a_snapshot_is_not_changed_by_what_the_runtime_does_later() -> None:
    messages, tools = [user("a")], [{"name": "ls", "schema": {}}]
    request = Request(messages=messages, tools=tools, lineage="1", purpose="compaction")
    kept = snapshot(request)
    messages[0]["content"].append("later")
    tools[0]["schema"] = {"type": "object"}

    assert kept.messages == [user("a")]
    assert kept.tools == [{"name": "ls", "schema": {}}]
    assert (kept.session_id, kept.lineage, kept.purpose) == ("live", "1", "compaction")
    assert kept.system is None
    assert kept.original is request


def test_a_snapshot_finds_roles_and_results() -> None:
    kept = snapshot(Request(messages=[user("a"), calls("x"), result("x"), calls("x"), result("x")]))
    kept.messages[4]["content"][0]["content"] = ["the last"]

    assert kept.roles() == ["user", "assistant", "tool", "assistant", "tool"]
    assert kept.tool_result("x")["content"] == ["the last"]


@pytest.mark.parametrize(
    ("messages", "known"), [([], "none at all"), ([result("x", "y")], "'x', 'y'")], ids=str
)
def test_a_result_that_is_not_there_names_those_that_are(messages: list[Any], known: str) -> None:
    with pytest.raises(LookupError) as caught:
        snapshot(Request(messages=messages)).tool_result("z")

    assert str(caught.value) == f"no tool result answers 'z'; there is {known}"
