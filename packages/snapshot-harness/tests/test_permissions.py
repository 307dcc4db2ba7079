from typing import Any

from snapshot_harness.permissions import PermissionDesk, refuse
from snapshot_harness.steps import PermissionAnswer

KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


def desk(*answers: dict[str, Any]) -> PermissionDesk:
    return PermissionDesk([PermissionAnswer(**answer) for answer in answers])


def request(name: object, call: str, *kinds: str, session: str = "s") -> dict[str, Any]:
    options = [{"optionId": f"o-{kind}", "kind": kind} for kind in kinds or KINDS]
    params = {"sessionId": session, "toolCall": {"toolCallId": call}, "options": options}
    return {"id": name, "method": "session/request_permission", "params": params}


def ask(desk: PermissionDesk, frame: dict[str, Any], place: int = 0, **rest: Any) -> list[object]:  # noqa: ANN401
    responses = desk.ask(frame, place=place, **{"cancelling": False, **rest})
    return [(one["id"], one["result"]["outcome"].get("optionId", "cancelled")) for one in responses]


def test_answers_are_given_first_in_first_out_by_kind() -> None:
    queue = desk({"kind": "allow_once"}, {"kind": "reject_always"})

    assert ask(queue, request(0, "a")) == [(0, "o-allow_once")]
    assert ask(queue, request("x", "b")) == [("x", "o-reject_always")]
    assert list(queue.left_over()) == []


def test_an_empty_queue_answers_cancelled() -> None:
    assert ask(desk(), request(1, "a")) == [(1, "cancelled")]


def test_a_named_answer_goes_to_its_tool_call_whatever_comes_first() -> None:
    queue = desk({"kind": "allow_once", "toolCall": "b"}, {"kind": "reject_once", "toolCall": "a"})

    assert ask(queue, request(1, "a")) == [(1, "o-reject_once")]
    assert ask(queue, request(2, "b")) == [(2, "o-allow_once")]


def test_a_tool_call_may_be_named_by_its_number() -> None:
    queue = desk({"kind": "allow_once", "toolCall": 2}, {"kind": "reject_once", "toolCall": 1})
    queue.announce("s", "random-1")
    queue.announce("s", "random-2")

    assert ask(queue, request(1, "random-2")) == [(1, "o-allow_once")]
    assert ask(queue, request(2, "random-1")) == [(2, "o-reject_once")]


def test_an_answer_waits_for_the_one_it_names() -> None:
    queue = desk(
        {"kind": "allow_once", "toolCall": "a", "after": 1},
        {"kind": "reject_once", "toolCall": "b", "after": 2},
        {"kind": "allow_always", "toolCall": "c"},
    )

    assert ask(queue, request(1, "a")) == []
    assert ask(queue, request(2, "b")) == []
    assert ask(queue, request(3, "c")) == [
        (3, "o-allow_always"),
        (2, "o-reject_once"),
        (1, "o-allow_once"),
    ]


def test_a_held_request_is_cancelled_with_its_session_and_so_is_every_open_one() -> None:
    queue = desk(
        {"kind": "hold"}, {"kind": "allow_once", "toolCall": "b", "after": 2}, {"kind": "hold"}
    )
    ask(queue, request(1, "a"))
    ask(queue, request(2, "b"))
    ask(queue, request(3, "c", session="other"))

    cancelled = queue.cancel("s")

    assert [response["id"] for response in cancelled] == [1, 2]
    assert [response["id"] for response in queue.cancel("other")] == [3]
    assert list(queue.left_over()) == []


def test_a_request_while_the_client_cancels_takes_no_answer() -> None:
    queue = desk({"kind": "allow_once"})

    assert ask(queue, request(1, "a"), cancelling=True) == [(1, "cancelled")]
    assert list(queue.left_over()) == ["permission answer 0 (allow_once) was never asked for"]


def test_a_kind_that_is_not_offered_is_a_mistake_and_cancelled() -> None:
    queue = desk({"kind": "allow_always", "toolCall": "a"})

    assert ask(queue, request(1, "a", "allow_once")) == [(1, "cancelled")]
    assert queue.mistakes == [
        "permission answer 0 (allow_always for 'a') was not offered; offered: allow_once"
    ]


def test_a_request_without_options_is_a_mistake_of_the_answer() -> None:
    queue = desk({"kind": "allow_once"})

    assert queue.ask({"id": 1}, place=0, cancelling=False)[0]["result"]["outcome"] == {
        "outcome": "cancelled"
    }
    assert "offered: nothing" in queue.mistakes[0]


def test_unnamed_answers_to_several_requests_of_one_run_are_told() -> None:
    queue = desk({"kind": "allow_once"}, {"kind": "allow_once", "toolCall": "b"})
    ask(queue, request(1, "a"), place=3)
    ask(queue, request(2, "b"), place=5)

    assert list(queue.unnamed_in([[3], [5]])) == []
    (found,) = queue.unnamed_in([[2, 3, 4, 5], [9]])
    assert found.startswith("permission answer 0 (allow_once) names no tool call")


def test_what_a_dead_agent_asked_is_forgotten() -> None:
    queue = desk({"kind": "hold"})
    ask(queue, request(1, "a"))

    queue.forget()

    assert queue.cancel("s") == []


def test_a_refusal_answers_any_id() -> None:
    error = {"code": -32601, "message": "no"}

    assert refuse({"id": None}, -32601, "no") == {"jsonrpc": "2.0", "id": None, "error": error}
