from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import SESSION, answered, frame, said, tool

from snapshot_harness.order import call_of, canonical_order

OTHER = "another session"
Frames = list[dict[str, Any]]


def child(call: str, status: str, parent: str) -> dict[str, Any]:
    return tool(call, status, _meta={"parentToolCallId": parent})


def asks(call: str, number: int) -> dict[str, Any]:
    params = {"sessionId": SESSION, "toolCall": {"toolCallId": call}}
    return {"id": number, "method": "session/request_permission", "params": params}


@st.composite
def interleaved(draw: st.DrawFn, lanes: Sequence[Frames]) -> Frames:
    """Return the frames of all lanes, each lane's own in order."""
    rest = [list(lane) for lane in lanes if lane]
    mixed: Frames = []
    while rest:
        place = draw(st.integers(0, len(rest) - 1))
        mixed.append(rest[place].pop(0))
        rest = [lane for lane in rest if lane]
    return mixed


FIRST = [tool("1.1.1", "in_progress"), asks("1.1.1", 7), tool("1.1.1", "completed")]
SECOND = [tool("1.1.2", "in_progress"), tool("1.1.2", "in_progress", n=2), tool("1.1.2", "failed")]
THIRD = [
    {"id": 1, "method": "fs/read", "params": {"sessionId": SESSION, "_meta": {"toolCallId": "x"}}},
    frame("plan", _meta={"toolCallId": "x"}),
]
ANNOUNCED = [tool("1.1.1", "pending"), tool("1.1.2", "pending"), frame("plan", toolCallId="x")]


@given(mixed=interleaved([FIRST, SECOND, THIRD]))
def test_parallel_calls_give_one_order_however_they_ran(mixed: Frames) -> None:
    start, end = [said("before")], [said("after")]

    ordered = canonical_order([*start, *ANNOUNCED, *mixed, *end])

    assert ordered == [
        said("before"),
        ANNOUNCED[0],
        *FIRST,
        ANNOUNCED[1],
        *SECOND,
        ANNOUNCED[2],
        *THIRD,
        said("after"),
    ]


CHILD_A = [child("a", "pending", "1.1.1"), child("a", "completed", "1.1.1")]
CHILD_B = [child("b", "pending", "1.1.1"), tool("b", "completed")]
GRANDCHILD = [child("g", "pending", "a"), child("g", "completed", "a")]


@given(
    mixed=interleaved(
        [
            [tool("1.1.1", "in_progress"), CHILD_A[1], tool("1.1.1", "completed")],
            [CHILD_B[1]],
            [tool("1.1.2", "in_progress"), tool("1.1.2", "completed")],
        ]
    )
)
def test_a_childs_frames_lie_in_the_lane_of_the_call_that_spawned_it(mixed: Frames) -> None:
    announced = [tool("1.1.1", "pending"), tool("1.1.2", "pending"), CHILD_A[0], CHILD_B[0]]

    ordered = canonical_order([*announced, *mixed])

    names = [call_of(one) for one in ordered]
    assert [name[1] for name in names if name][-3:] == ["1.1.2"] * 3
    assert all(name and name[1] in {"1.1.1", "a", "b"} for name in names[:-3])


@given(mixed=interleaved([CHILD_A, CHILD_B]))
def test_children_of_one_call_are_lanes_between_its_own_frames(mixed: Frames) -> None:
    ends = [tool("1.1.1", "pending"), tool("1.1.1", "completed")]

    ordered = canonical_order([ends[0], *mixed, ends[1]])

    first, second = (CHILD_A, CHILD_B) if mixed[0] == CHILD_A[0] else (CHILD_B, CHILD_A)
    assert ordered == [ends[0], *first, *second, ends[1]]


def test_a_calls_own_frame_is_a_barrier_for_its_children() -> None:
    own = tool("1.1.1", "in_progress")
    frames = [CHILD_A[0], CHILD_B[0], own, CHILD_B[1], CHILD_A[1]]

    assert canonical_order(frames) == [CHILD_A[0], CHILD_B[0], own, CHILD_A[1], CHILD_B[1]]


def test_a_grandchild_lies_inside_its_parents_lane() -> None:
    frames = [CHILD_A[0], CHILD_B[0], GRANDCHILD[0], CHILD_B[1], GRANDCHILD[1], CHILD_A[1]]

    ordered = canonical_order([tool("1.1.1", "pending"), *frames])

    lane = [CHILD_A[0], *GRANDCHILD, CHILD_A[1]]
    assert ordered == [tool("1.1.1", "pending"), *lane, *CHILD_B]


def test_lanes_stand_in_order_of_first_announcement_in_the_whole_transcript() -> None:
    later = [tool("1.1.2", "in_progress"), tool("1.1.1", "in_progress")]

    ordered = canonical_order([*ANNOUNCED[:2], said("text"), *later])

    assert ordered == [*ANNOUNCED[:2], said("text"), later[1], later[0]]


def test_a_lane_whose_spawner_never_shows_stands_where_its_first_child_does() -> None:
    frames = [
        child("c", "pending", "ghost"),
        tool("1.1.1", "pending"),
        child("d", "pending", "ghost"),
        tool("1.1.1", "completed"),
        child("c", "completed", "ghost"),
    ]

    assert canonical_order(frames) == [frames[0], frames[4], frames[2], frames[1], frames[3]]


def test_frames_that_name_no_call_keep_their_place() -> None:
    frames = [
        tool("1.1.2", "pending"),
        answered(3, stopReason="end_turn"),
        tool("1.1.1", "pending"),
        {"snapshot": "restart"},
        tool("1.1.2", "completed"),
        {"method": "session/update", "params": [1]},
        tool("1.1.1", "completed"),
    ]

    assert canonical_order(frames) == frames


def test_the_same_id_in_two_sessions_is_two_calls() -> None:
    frames = [
        tool("1.1.1", "pending"),
        tool("1.1.1", "pending", OTHER),
        tool("1.1.1", "completed"),
        tool("1.1.1", "completed", OTHER),
    ]

    ordered = canonical_order(frames)

    assert ordered == [frames[0], frames[2], frames[1], frames[3]]


def test_calls_that_name_each_other_as_parents_are_still_all_there() -> None:
    frames = [child("a", "pending", "b"), child("b", "pending", "a"), child("c", "pending", "c")]

    ordered = canonical_order([*frames, *frames])

    assert sorted(map(str, ordered)) == sorted(map(str, [*frames, *frames]))


@pytest.mark.parametrize(
    ("params", "call"),
    [
        ({"sessionId": "s", "update": {"toolCallId": "1"}}, ("s", "1")),
        ({"sessionId": "s", "toolCall": {"toolCallId": "2"}}, ("s", "2")),
        ({"sessionId": "s", "toolCallId": "3"}, ("s", "3")),
        ({"sessionId": "s", "_meta": {"toolCallId": "4"}}, ("s", "4")),
        ({"sessionId": "s", "update": {"_meta": {"toolCallId": "5"}}}, ("s", "5")),
        ({"update": {"toolCallId": "6"}}, ("", "6")),
        ({"sessionId": 8, "update": {"toolCallId": "7"}}, ("", "7")),
        ({"sessionId": "s", "update": {"toolCallId": 1}}, None),
        ({"sessionId": "s", "update": "text", "_meta": []}, None),
        (["s"], None),
        (None, None),
    ],
)
def test_a_call_is_named_in_any_of_these_places(params: object, call: object) -> None:
    assert call_of({"method": "m", "params": params}) == call


LANES = st.lists(
    st.sampled_from([*FIRST, *SECOND, *CHILD_A, *CHILD_B, *GRANDCHILD, said("x")]), max_size=14
)


@given(frames=LANES)
def test_ordering_twice_is_ordering_once(frames: Frames) -> None:
    once = canonical_order(frames)

    assert canonical_order(once) == once
    assert sorted(map(str, once)) == sorted(map(str, frames))
