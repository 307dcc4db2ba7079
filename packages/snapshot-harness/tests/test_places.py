from typing import Any

import pytest
from judging import answered, event, frame, said, tool

from snapshot_harness.places import FRAME_KINDS, LOG_KINDS, Place, frame_places, log_places

S1 = "{{session:1}}"


def test_events_are_where_they_say_or_where_the_last_one_was() -> None:
    events = [
        event("a"),
        event("turn/start", {"turn": 1}),
        event("step/start", {"turn": 1, "step": 2}),
        event("b"),
        event("c", {"step": 3}),
        event("turn/start", {"turn": 2}),
        {"type": "odd", "data": "text"},
        event("d", {"turn": True, "step": 1.0}),
    ]

    assert log_places(events) == [
        Place(),
        Place(),
        Place(1),
        Place(1, 2),
        Place(1, 2),
        Place(1, 3),
        Place(2),
        Place(2),
        Place(2),
    ]


def test_frames_are_where_their_call_says_or_after_the_prompts_answered() -> None:
    frames: list[dict[str, Any]] = [
        answered(1),
        answered(2, sessionId=S1),
        said("a", S1),
        tool("1.2.1", "pending", S1),
        tool("1/1.2.1:4.5.6", "pending", S1),
        answered(3, stopReason="end_turn"),
        said("b", S1),
        said("c", "other"),
        answered(4, stopReason="end_turn"),
        {"method": "m", "params": []},
    ]

    assert frame_places(frames) == [
        Place(),
        Place(),
        Place(1, None, "1"),
        Place(1, 2, "1"),
        Place(1, None, "1"),
        Place(1, None, "1"),
        Place(2, None, "1"),
        Place(1, None, "other"),
        Place(1, None, "other"),
        Place(),
    ]


def test_what_names_no_call_is_in_the_turn_of_the_last_that_did() -> None:
    frames = [tool("3.2.1", "pending"), said("done")]

    assert [(place.turn, place.step) for place in frame_places(frames)] == [(3, 2), (3, None)]


def test_an_answer_before_any_update_belongs_to_no_session() -> None:
    assert frame_places([answered(1, stopReason="end_turn")]) == [Place()]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (event("a", {"v": 1}), event("a", {"v": 2}), True),
        (event("a"), event("b"), False),
        (event("a", {"callId": "1"}), event("a", {"callId": "2"}), False),
        (event("a", {"callId": []}), event("a", {"callId": {}}), True),
        (event("a", {"chunk": {"type": "x"}}), event("a", {"chunk": {"type": "y"}}), False),
        (event("a", {"chunk": 5}), {"type": "a", "data": 5}, True),
    ],
)
def test_an_event_stays_the_same_one_when_its_content_changes(
    left: dict[str, Any], right: dict[str, Any], *, same: bool
) -> None:
    closest, loosest = LOG_KINDS

    assert (closest(left, Place(1)) == closest(right, Place(1))) == same
    assert closest(left, Place(1)) != closest(left, Place(2))
    assert (loosest(left, Place(1)) == loosest(right, Place(2))) == (left["type"] == right["type"])


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (said("a"), said("b"), True),
        (said("a"), frame("plan"), False),
        (tool("1.1.1", "a"), tool("1.1.1", "b"), True),
        (tool("1.1.1", "a"), tool("1.1.2", "a"), False),
        (answered(1, a=1), answered(2, b=2), True),
        (answered(1), {"id": 1, "method": "m"}, False),
        ({"method": "m", "params": 1}, {"method": "m", "params": {"update": 1}}, True),
    ],
)
def test_a_frame_stays_the_same_one_when_its_content_changes(
    left: dict[str, Any], right: dict[str, Any], *, same: bool
) -> None:
    closest, middle, loosest = FRAME_KINDS

    assert (closest(left, Place()) == closest(right, Place())) == same
    assert not same or middle(left, Place()) == middle(right, Place())
    same_method = left.get("method") == right.get("method")
    assert (loosest(left, Place()) == loosest(right, Place())) == same_method
