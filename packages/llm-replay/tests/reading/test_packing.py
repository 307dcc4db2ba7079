import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import Json, event, event_lists, json_values, persisted, row, rows, text

from llm_replay.packing import (
    PACKED,
    MalformedRowError,
    count_members,
    expand_row,
    is_safe_integer,
    pack_events,
    project_row,
    row_chunks,
)

SAFE = 2**53 - 1
TEXT_ROW: Json = {
    "type": "text-chunks",
    "seq0": 5,
    "time0": 1000,
    "data": {"turn": 1, "step": 2, "index": 0, "dt": [10, -3], "texts": ["a", "", "b"]},
}
TOOL_ROW: Json = {
    "type": "tool-call-chunks",
    "seq0": 5,
    "time0": 1000,
    "data": {"turn": 1, "step": 2, "index": 1, "dt": [0], "id": "c", "args": ["{", "}"]},
}


def with_data(base: Json, **changes: object) -> Json:
    return {**base, "data": {**base["data"], **changes}}


def without(base: Json, key: str) -> Json:
    return {**base, "data": {name: value for name, value in base["data"].items() if name != key}}


def complaint(bad: Json) -> str:
    with pytest.raises(MalformedRowError) as caught:
        expand_row(bad)
    with pytest.raises(MalformedRowError, match=r"."):
        count_members(bad)
    return str(caught.value)


def unpacked(packed: list[Json]) -> list[Json]:
    return [
        event
        for record in packed
        for event in (expand_row(record) if record["type"] in PACKED else [record])
    ]


def test_a_row_stands_for_one_event_a_member() -> None:
    assert expand_row(TEXT_ROW) == [
        {
            "type": "assistant/chunk",
            "seq": seq,
            "time": time,
            "data": {"turn": 1, "step": 2, "chunk": text(piece)},
        }
        for seq, time, piece in [(5, 1000, "a"), (6, 1010, ""), (7, 1007, "b")]
    ]
    assert count_members(TEXT_ROW) == 3


def test_a_name_is_on_every_member_or_on_none() -> None:
    named = with_data(TOOL_ROW, name="bash")

    assert [chunk.get("name") for chunk in row_chunks(TOOL_ROW)] == [None, None]
    assert [chunk.get("name") for chunk in row_chunks(named)] == ["bash", "bash"]


def test_numbers_without_a_fraction_are_integers() -> None:
    members = expand_row({**with_data(TEXT_ROW, dt=[1.0, 2]), "seq0": 1.0, "time0": 1e3})

    assert [(member["seq"], member["time"]) for member in members] == [
        (1, 1000),
        (2, 1001),
        (3, 1003),
    ]
    assert all(type(member["time"]) is int for member in members)


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        *((SAFE, True), (-SAFE, True), (SAFE + 1, False), (1.5, False), (2.0, True)),
        *((1e300, False), (True, False), ("1", False), (None, False), (float("inf"), False)),
    ],
)
def test_a_safe_integer_is_one_that_every_reader_keeps(value: object, *, safe: bool) -> None:
    assert is_safe_integer(value) is safe


ENVELOPE = "its keys must be exactly type, seq0, time0, data"
SEQ0 = "seq0 must be an integer from 0 to 2^53-1"
TIME0 = "time0 must be an integer within ±(2^53-1)"
TEXT_KEYS = "data must have exactly the keys turn, step, index, dt, texts"
TOOL_KEYS = "data must have exactly the keys turn, step, index, dt, id, name?, args"
NUMBERS = "turn, step and index must be numbers"
TEXTS = "texts must be a list of strings, at least one"
DT = "dt must be a list of integers within ±(2^53-1)"
TIMES = "the time of a member leaves ±(2^53-1)"
NAMES = "id, and name where there is one, must be strings"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({**TEXT_ROW, "seq": 1}, ENVELOPE),
        ({"type": "text-chunks"}, ENVELOPE),
        ({**TEXT_ROW, "seq0": -1}, SEQ0),
        ({**TEXT_ROW, "seq0": 0.5}, SEQ0),
        ({**TEXT_ROW, "seq0": "1"}, SEQ0),
        ({**TEXT_ROW, "seq0": SAFE + 1}, SEQ0),
        ({**TEXT_ROW, "time0": None}, TIME0),
        ({**TEXT_ROW, "time0": SAFE + 1}, TIME0),
        ({**TEXT_ROW, "data": None}, "data must be an object"),
        ({**TEXT_ROW, "data": []}, "data must be an object"),
        (with_data(TEXT_ROW, more=1), TEXT_KEYS),
        (without(TEXT_ROW, "dt"), TEXT_KEYS),
        (with_data(TEXT_ROW, id="c"), TEXT_KEYS),
        (without(TOOL_ROW, "id"), TOOL_KEYS),
        (with_data(TOOL_ROW, texts=["a", "b"]), TOOL_KEYS),
        (with_data(TEXT_ROW, turn="1"), NUMBERS),
        (with_data(TEXT_ROW, step=True), NUMBERS),
        (with_data(TEXT_ROW, index=None), NUMBERS),
        (with_data(TEXT_ROW, texts="abc"), TEXTS),
        (with_data(TEXT_ROW, texts=[], dt=[]), TEXTS),
        (with_data(TEXT_ROW, texts=["a", 1, "b"]), TEXTS),
        (with_data(TOOL_ROW, args=[1, 2]), TEXTS.replace("texts", "args")),
        (with_data(TEXT_ROW, dt=None), DT),
        (with_data(TEXT_ROW, dt=[1, 0.5]), DT),
        (with_data(TEXT_ROW, dt=[1, True]), DT),
        (with_data(TEXT_ROW, dt=[1, SAFE + 1]), DT),
        (with_data(TEXT_ROW, dt=[1.0, -SAFE - 1]), DT),
        (with_data(TEXT_ROW, dt=[1]), "dt has 1 gaps for 3 members"),
        (with_data(TOOL_ROW, id=1), NAMES),
        (with_data(TOOL_ROW, name=None), NAMES),
        ({**TEXT_ROW, "seq0": SAFE - 1}, "the seq of its last member leaves ±(2^53-1)"),
        ({**TEXT_ROW, "time0": SAFE - 5}, TIMES),
        ({**with_data(TEXT_ROW, dt=[-9, 9]), "time0": -SAFE}, TIMES),
    ],
)  # fmt: skip
def test_a_row_that_is_not_exactly_one_is_refused(bad: Json, told: str) -> None:
    assert complaint(bad) == told


def test_times_may_come_near_the_edge_as_long_as_each_stays_inside() -> None:
    near = {**with_data(TEXT_ROW, dt=[10, -10]), "time0": SAFE - 10}

    assert [member["time"] for member in expand_row(near)] == [SAFE - 10, SAFE, SAFE - 10]


def test_the_last_seq_may_be_the_last_safe_one() -> None:
    assert expand_row({**TEXT_ROW, "seq0": SAFE - 2})[-1]["seq"] == SAFE


def test_three_deltas_are_one_row_and_two_are_not() -> None:
    events = persisted(rows(text("a"), text("b"), text("c")))
    data = {"turn": 1, "step": 1, "index": 0, "dt": [10, 10], "texts": ["a", "b", "c"]}

    assert pack_events(events[:2]) == events[:2]
    assert pack_events(events) == [{"type": "text-chunks", "seq0": 0, "time0": 1000, "data": data}]


def test_keys_of_a_row_stand_in_the_order_in_which_logs_have_them() -> None:
    delta = {"type": "tool-call-delta", "index": 0, "id": "c", "name": "bash", "argumentsDelta": ""}
    [packed] = pack_events(persisted(rows(delta, delta, delta)))

    assert list(packed) == ["type", "seq0", "time0", "data"]
    assert list(packed["data"]) == ["turn", "step", "index", "dt", "id", "name", "args"]


@pytest.mark.parametrize(
    "odd",
    [
        event("turn/end"),
        {"type": "assistant/chunk", "data": []},
        {"type": "assistant/chunk", "data": {"turn": 1, "step": 1, "chunk": text("x"), "more": 1}},
        row("x"),
        row({**text("x"), "more": 1}),
        row({**text("x"), "text": 1}),
        row({**text("x"), "index": 0.0}),
        row({"type": "tool-call-delta", "index": 0, "id": 1, "argumentsDelta": ""}),
        row(text("x"), turn=2),
        row(text("x"), step=2),
        row(text("x", index=1)),
    ],
)
def test_whatever_is_not_the_same_kind_of_delta_ends_a_run(odd: Json) -> None:
    plain = rows(text("a"), text("b"))
    events = persisted([*plain, odd, *plain])

    assert pack_events(events) == events


@pytest.mark.parametrize(
    "change",
    [
        *({"seq": 9}, {"seq": -1}, {"seq": 1.0}, {"seq": SAFE + 1}, {"more": 1}),
        *({"time": 1010.5}, {"time": SAFE + 1}, {"time": True}),
    ],
)
def test_an_event_whose_place_is_unusual_is_written_as_it_is(change: Json) -> None:
    events = persisted(rows(text("a"), text("b"), text("c")))
    events[1] = {**events[1], **change}

    assert pack_events(events) == events


def test_a_gap_in_time_that_is_no_safe_integer_ends_a_run() -> None:
    events = persisted(rows(*map(text, "abcdef")))
    for place, changed in enumerate(events):
        changed["time"] = -SAFE if place < 3 else SAFE

    assert [record["type"] for record in pack_events(events)] == ["text-chunks", "text-chunks"]


def test_projecting_removes_the_envelope_and_nothing_below_it() -> None:
    record = {
        "type": "x",
        "seq": 1,
        "time": 2,
        "seq0": 3,
        "time0": 4,
        "data": {"seq": 5, "time": 6},
    }

    assert project_row(record) == {"type": "x", "data": {"seq": 5, "time": 6}}


@given(event_lists())
def test_packing_then_expanding_gives_the_same_events(events: list[Json]) -> None:
    assert unpacked(pack_events(events)) == events


@given(event_lists())
def test_packing_what_was_expanded_gives_the_same_rows(events: list[Json]) -> None:
    packed = pack_events(events)

    assert pack_events(unpacked(packed)) == packed


@given(st.sampled_from(sorted(PACKED)), json_values, json_values, json_values)
def test_random_rows_expand_or_are_refused_and_nothing_else(
    tag: str, seq0: object, time0: object, data: object
) -> None:
    try:
        found = expand_row({"type": tag, "seq0": seq0, "time0": time0, "data": data})
    except MalformedRowError as error:
        assert str(error)  # noqa: PT017  which of the two it is does not matter
    else:
        assert found
