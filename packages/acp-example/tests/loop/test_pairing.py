from typing import Any

from loop_checks import REPAIRED

from acp_example.session import Conversation, paired


def said(text: str) -> dict[str, Any]:
    return {"id": text, "role": "user", "content": [{"type": "text", "text": text}]}


def asked(*ids: str) -> dict[str, Any]:
    calls = [{"type": "tool-call", "id": one, "name": "look", "arguments": "{}"} for one in ids]
    return {"id": "a", "role": "assistant", "content": calls}


def answer(call_id: str, text: str = "seen") -> dict[str, Any]:
    block = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": text}],
        "isError": False,
    }
    return {"id": f"r-{call_id}", "role": "user", "content": [block]}


def test_pairing_a_paired_history_changes_nothing() -> None:
    history = [said("go"), asked("a", "b"), answer("a"), answer("b"), said("more")]

    assert paired(history) == history
    assert all(one is other for one, other in zip(paired(history), history, strict=True))


def test_pairing_gives_an_orphan_call_one_result() -> None:
    history = [said("go"), asked("a"), said("more")]

    repaired = paired(history)

    assert [message["role"] for message in repaired] == ["user", "assistant", "user", "user"]
    block = repaired[2]["content"][0]
    assert (block["toolCallId"], block["isError"]) == ("a", True)
    assert block["content"] == [{"type": "text", "text": REPAIRED}]
    assert paired(repaired) == repaired


def test_pairing_repairs_only_what_is_unpaired() -> None:
    repaired = paired([said("go"), asked("a", "b"), answer("b")])

    assert [m["content"][0]["toolCallId"] for m in repaired[2:]] == ["a", "b"]
    assert repaired[3] == answer("b")


def test_pairing_drops_a_result_that_answers_nothing() -> None:
    assert paired([said("go"), answer("ghost")]) == [said("go")]


def test_pairing_lets_the_latest_of_two_results_win() -> None:
    repaired = paired([asked("a"), answer("a", "first"), answer("a", "latest")])

    assert repaired == [asked("a"), answer("a", "latest")]


def test_pairing_knows_ids_that_come_again() -> None:
    history = [asked("call_0"), answer("call_0", "1"), asked("call_0"), answer("call_0", "2")]

    assert paired(history) == history


def test_pairing_drops_blank_messages() -> None:
    blank = {"id": "x", "role": "assistant", "content": []}

    assert paired([said("go"), blank]) == [said("go")]


def test_fold_replaces_a_range_that_is_not_there_by_appending() -> None:
    made = Conversation(now=lambda: 0, new_id=lambda: "id")

    made.record("user/message", said("a"), surfaceOp={"op": "replace", "start": 7, "end": 9})

    assert made.messages == [said("a")]
