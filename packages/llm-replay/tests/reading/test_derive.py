from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import (
    FINISH,
    Json,
    asked,
    chunks,
    event,
    event_lists,
    hang,
    json_values,
    persisted,
    row,
    rows,
    text,
)

from llm_replay.derive import derive_calls, derive_replay_script
from llm_replay.exceptions import ScriptError, UnfinishedCallError
from llm_replay.packing import MalformedRowError, pack_events

FAILURE = {"message": "too busy", "code": "SERVER"}
SUMMARY = [{"type": "text", "text": "so far"}]


def entries(*events: Json, seed_length: int = 0) -> list[Json | None]:
    return [call.entry for call in derive_calls(events, seed_length=seed_length)]


def refusal(*events: Json) -> str:
    with pytest.raises(ScriptError) as caught:
        derive_replay_script(events)
    return str(caught.value)


def failed(failure: Json) -> Json:
    return {"type": "finish", "reason": {"kind": "error", "failure": failure}}


def compacted(**data: object) -> Json:
    return event("compaction/summary", llmStreamCall=True, **data)


def test_a_call_ends_at_its_finish_and_not_with_its_step() -> None:
    retry = rows(text("again"), FINISH)

    assert derive_replay_script([*rows(text("a"), failed(FAILURE)), *retry]) == [
        chunks(text("a"), failed(FAILURE)),
        chunks(text("again"), FINISH),
    ]


def test_a_call_says_where_it_stands() -> None:
    other = [row(text("a"), step=2), event("x"), row(FINISH, step=2)]
    first, second = derive_calls([event("turn/start"), row(FINISH), asked(step=2), *other])

    assert (first.call, first.turn, first.step, first.place) == (1, 1, 1, 1)
    assert (list(first.positions), first.announced, first.purpose) == ([1], False, "turn")
    assert (second.call, second.turn, second.step, second.place) == (2, 1, 2, 2)
    assert (list(second.positions), second.announced, second.summary) == ([3, 5], True, None)


def test_events_that_are_no_chunks_do_not_matter_without_announcements() -> None:
    others = [event("assistant/message"), event("turn/end"), event("compaction/end"), {"type": 7}]

    assert entries(row(text("a")), *others, row(FINISH)) == [chunks(text("a"), FINISH)]


def test_chunks_of_unknown_types_are_carried_along() -> None:
    odd: list[Json] = [{"type": "new"}, {"no": "type"}, {"type": None}]

    assert entries(*rows(*odd, FINISH)) == [chunks(*odd, FINISH)]


def test_a_call_without_an_end_is_refused_with_its_turn_and_step() -> None:
    assert refusal(*rows(text("a"), turn=3, step=2), *rows(FINISH, turn=4)) == (
        "session snapshot: the model call of turn 3, step 2 never finished\n"
        "  It has no finish chunk, and chunks of another step follow.\n"
        '  hint: add replay.override.json: a list of all entries, this one "throw" or "hang"'
    )


def test_a_call_at_the_end_of_a_log_without_announcements_is_refused() -> None:
    with pytest.raises(UnfinishedCallError, match="and the log ends") as caught:
        derive_replay_script(rows(FINISH, text("a")))

    assert (caught.value.turn, caught.value.step) == (1, 1)


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "assistant/chunk"},
        {"type": "assistant/chunk", "data": "x"},
        event("assistant/chunk", turn=1, chunk=text("a")),
        row("x"),
        row(["type"]),
    ],
)
def test_a_chunk_that_cannot_be_read_is_refused(bad: Json) -> None:
    hole = derive_calls([row(FINISH), bad])[1]

    assert (hole.entry, hole.place, list(hole.positions)) == (None, 1, [])
    assert refusal(row(FINISH), bad) == (
        "session snapshot: this assistant/chunk has no turn, step and chunk\n"
        "  hint: repair this record, or record the scenario again"
    )


def test_a_chunk_that_cannot_be_read_ends_the_call_before_it() -> None:
    assert "and a chunk that can't be read follows" in refusal(row(text("a")), row("x"))


def test_an_event_that_is_no_object_is_no_event() -> None:
    with pytest.raises(TypeError):
        derive_calls([[]])  # type: ignore[list-item]  # as from an untyped caller


def test_an_announced_call_may_be_served_its_own_finish() -> None:
    assert entries(asked(), *rows(text("a"), FINISH)) == [chunks(text("a"), FINISH)]


@pytest.mark.parametrize(
    "cut",
    [
        event("assistant/message", interrupted=True),
        event("turn/end", reason={"kind": "aborted"}),
        event("turn/end", reason={"kind": "interrupted"}),
        event("compaction/end", error={"code": "ABORTED", "message": "cancelled"}),
    ],
)
@pytest.mark.parametrize("streamed", [[], [text("a")]])
def test_a_call_that_a_cancel_cut_hangs_after_what_was_streamed(
    cut: Json, streamed: list[Json]
) -> None:
    later = [asked(call=2, step=2), *rows(FINISH, step=2)]

    assert entries(asked(), *rows(*streamed), cut, *later) == [hang(*streamed), chunks(FINISH)]


def test_a_call_at_the_end_of_the_log_hangs() -> None:
    assert entries(asked(), row(text("a")), event("step/end")) == [hang(text("a"))]


def test_a_call_whose_message_is_whole_ended_without_a_finish() -> None:
    assert entries(asked(), row(text("a")), event("assistant/message")) == [chunks(text("a"))]
    assert entries(asked(), event("assistant/message", interrupted=False)) == [chunks()]


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ([asked(call=2)], "the next call follows"),
        ([event("turn/end", reason={"kind": "error"})], "the turn ended with 'error'"),
        ([event("turn/end", reason=None)], "the turn ended with None"),
        ([event("llm/retry", failure=FAILURE), asked(call=2)], "the next call follows"),
        ([event("compaction/end", error=FAILURE), asked(call=2)], "the next call follows"),
        ([row(FINISH, step=9)], "chunks of another step follow"),
        ([compacted(rawOutput=SUMMARY)], "a compaction follows"),
    ],
)
def test_a_call_of_which_nothing_says_how_it_ended_is_a_hole(after: list[Json], why: str) -> None:
    hole = derive_calls([asked(), row(text("a")), *after])[0]

    assert (hole.entry, hole.announced) == (None, True)
    assert str(hole.error("a.jsonl:2")) == (
        "a.jsonl:2: the model call of turn 1, step 1 never finished\n"
        f"  It has no finish chunk, and {why}.\n"
        "  hint: add replay.override.json with a patch for this call: "
        '{"patches": [{"at": 0, "entry": {"kind": "throw", …}}]}'
    )


def test_chunks_after_an_announced_call_are_a_call_of_their_own() -> None:
    assert entries(asked(), *rows(FINISH, text("a"), FINISH)) == [
        chunks(FINISH),
        chunks(text("a"), FINISH),
    ]


def test_a_compaction_is_derived_from_its_summary() -> None:
    usage = {"inputTokens": 1, "outputTokens": 2}
    whole = chunks(
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "block-end", "index": 0, "block": SUMMARY[0]},
        {"type": "usage", "usage": usage},
        FINISH,
    )
    summary = compacted(rawOutput=SUMMARY, usage=usage)
    [announced] = derive_calls([asked(purpose="compaction"), summary])
    [bare] = derive_calls([event("x"), summary])

    assert announced.entry == bare.entry == whole
    assert (announced.summary, announced.place, announced.announced) == (1, 0, True)
    assert (bare.summary, bare.place, bare.announced) == (1, 1, False)
    assert (bare.purpose, list(bare.positions)) == ("compaction", [])


def test_a_summary_that_no_model_wrote_adds_nothing() -> None:
    made = event("compaction/summary", rawOutput=SUMMARY, llmStreamCall=1)

    assert entries(made) == []
    assert entries(asked(purpose="compaction"), made, row(FINISH)) == [chunks(FINISH)]


def test_a_summary_ends_a_call_that_was_not_announced() -> None:
    made = event("compaction/summary", rawOutput=SUMMARY)

    assert "and a compaction follows" in refusal(row(text("a")), made, row(FINISH))


@pytest.mark.parametrize("output", [{}, {"rawOutput": None}, {"rawOutput": ["text"]}])
def test_a_summary_without_its_output_is_refused(output: Json) -> None:
    assert refusal(compacted(**output)) == (
        "session snapshot: this compaction/summary says llmStreamCall, "
        "and has no rawOutput of blocks\n"
        "  hint: repair this record, or record the scenario again"
    )


@pytest.mark.parametrize(
    "fact", [event("llm/retry", failure=FAILURE), event("compaction/end", error=FAILURE)]
)
def test_a_compaction_that_failed_ends_with_its_failure(fact: Json) -> None:
    assert entries(asked(purpose="compaction"), fact) == [chunks(failed(FAILURE))]


@pytest.mark.parametrize(
    "fact", [event("llm/retry"), event("compaction/end"), event("compaction/end", error="x")]
)
def test_a_compaction_whose_failure_is_not_told_goes_on(fact: Json) -> None:
    assert entries(asked(purpose="compaction"), fact) == [hang()]


def test_an_inherited_prefix_is_cut_off() -> None:
    events = [*rows(text("theirs"), FINISH), event("session/end-seed"), *rows(text("a"), FINISH)]
    [call] = derive_calls(events, seed_length=3)

    assert (call.entry, call.call, list(call.positions)) == (chunks(text("a"), FINISH), 1, [3, 4])
    assert entries(*events, seed_length=99) == []
    assert entries(*events, seed_length=-2) == [chunks(text("a"), FINISH)]
    assert entries(*events, seed_length=-99) == entries(*events)


def test_an_inherited_prefix_may_end_within_a_call_and_within_a_packed_row() -> None:
    events = persisted(rows(*map(text, "abcd"), FINISH))
    packed = pack_events(events)

    assert entries(*events, seed_length=2) == [chunks(text("c"), text("d"), FINISH)]
    assert entries(*packed, seed_length=2) == entries(*events, seed_length=2)
    assert entries(*packed, seed_length=4) == [chunks(FINISH)]
    assert entries(*packed, seed_length=-1) == [chunks(FINISH)]
    assert list(derive_calls(packed, seed_length=2)[0].positions) == [2, 3, 4]


def test_inherited_events_that_cannot_be_read_do_not_matter() -> None:
    assert entries(row("x"), asked(), {"no": "type"}, row(FINISH), seed_length=3) == [
        chunks(FINISH)
    ]


def test_a_packed_row_that_is_not_one_is_refused() -> None:
    with pytest.raises(MalformedRowError, match="data must be an object"):
        derive_calls([{"type": "text-chunks", "data": None}])


@given(event_lists(), st.integers(-9, 30))
def test_packed_rows_derive_like_the_events_they_stand_for(
    events: list[Json], seed_length: int
) -> None:
    plain = derive_calls(events, seed_length=seed_length)
    packed = derive_calls(pack_events(events), seed_length=max(seed_length, 0))

    if seed_length >= 0:
        assert [call.entry for call in packed] == [call.entry for call in plain]
        assert [list(call.positions) for call in packed] == [list(call.positions) for call in plain]


@given(event_lists())
def test_each_chunk_of_a_log_is_in_one_call_and_in_order(events: list[Json]) -> None:
    calls = derive_calls(events)
    places = [place for call in calls for place in call.positions]

    assert places == sorted(set(places))
    for call in calls:
        if call.entry is not None:
            streamed = [events[place]["data"]["chunk"] for place in call.positions]
            assert call.entry["chunks"] == streamed


_kinds = st.sampled_from(
    [
        "assistant/chunk",
        "assistant/message",
        "llm/call",
        "llm/retry",
        "turn/end",
        "compaction/summary",
        "compaction/end",
        "x",
    ]
)
_data: st.SearchStrategy[Any] = json_values | st.fixed_dictionaries(
    {"turn": json_values, "step": json_values, "chunk": json_values},
    optional={"reason": json_values, "error": json_values, "llmStreamCall": st.just(value=True)},
)


@given(st.lists(st.fixed_dictionaries({"type": _kinds}, optional={"data": _data}), max_size=8))
def test_random_events_derive_to_calls_or_holes_and_never_raise(events: list[Json]) -> None:
    calls = derive_calls(events)

    assert [call.call for call in calls] == list(range(1, len(calls) + 1))
    assert all((call.entry is None) == (call.problem is not None) for call in calls)


@pytest.mark.parametrize("odd", [{"type": None, "data": {}}, {"data": None}, {"type": ["x"]}])
def test_an_event_without_a_proper_type_in_the_middle_of_a_call_is_none_of_its_chunks(
    odd: dict[str, Any],
) -> None:
    at = {"turn": 1, "step": 1}
    finish = {"type": "finish", "reason": {"kind": "stop"}}
    events = [
        {"type": "llm/call", "data": {**at, "call": 1, "purpose": "turn"}},
        odd,
        {"type": "assistant/chunk", "data": {**at, "chunk": finish}},
    ]

    (call,) = derive_calls(events)

    assert call.positions == (2,)
    assert call.entry == {"kind": "chunks", "chunks": [finish]}
