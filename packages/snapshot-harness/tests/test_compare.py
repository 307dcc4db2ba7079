import json
import time
import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import (
    MESSAGE,
    RULES,
    SESSION,
    answer,
    answered,
    event,
    frame,
    log,
    run,
    said,
    tool,
)

from snapshot_harness.causes import Cause, diff, render
from snapshot_harness.compare import compare
from snapshot_harness.normalize import Normalized, normalize_fixture
from snapshot_harness.values import fingerprint

CHILD = "0a1b2c3d-0000-4000-8000-00000000000c"
OTHER = "0a1b2c3d-0000-4000-8000-0000000000b2"
Events = list[dict[str, Any]]


def user(text: str, name: str = MESSAGE, **rest: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    content = [{"type": "text", "text": text}]
    return event("user/message", {"id": name, "role": "user", "content": content}, **rest)


def result(text: str, turn: int = 1, step: int = 1) -> dict[str, Any]:
    return event("tool/result", {"turn": turn, "step": step, "message": {"text": text}})


EVENTS: Events = [
    event("turn/start", {"turn": 1}),
    event("step/start", {"turn": 1, "step": 1}),
    user("hello", sourceEventSeqs=[0, 1]),
    *answer("one ", "two"),
    result("output"),
    event("assistant/message", {"turn": 1, "step": 1, "n": 1}, sourceEventSeqs=[3, 4, 5, 6]),
    event("turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
]
FRAMES = [
    answered(0, sessionId=SESSION),
    tool("1.1.1", "pending"),
    tool("1.1.1", "completed", text="output"),
    said("one two"),
    answered(1, stopReason="end_turn"),
]


def of(events: Events, **header: Any) -> Normalized:  # noqa: ANN401  JSON
    return run([log(events, **header)])


def only(causes: list[Cause]) -> Cause:
    assert len(causes) == 1, render(causes)
    return causes[0]


def test_equal_runs_have_no_cause() -> None:
    assert compare(run([log(EVENTS)], FRAMES), run([log(EVENTS)], FRAMES)) == []


def test_a_changed_value_names_session_turn_step_line_path_and_both_values() -> None:
    changed = [*EVENTS[:8], result("other"), *EVENTS[9:]]

    cause = only(compare(of(EVENTS), of(changed)))

    assert cause == Cause(
        records=cause.records,
        surface="log",
        file="session.jsonl",
        session="1",
        turn=1,
        step=1,
        line=10,
        path="data.message.text",
        expected='"output"',
        actual='"other"',
        message="tool/result differs",
    )


def test_a_session_is_called_by_its_lineage() -> None:
    changed = [*EVENTS[:8], result("other"), *EVENTS[9:]]

    assert only(compare(of(EVENTS, lineage="1/2.1.1"), of(changed, lineage="1/2.1.1"))).session == (
        "1/2.1.1"
    )


def test_a_changed_header_is_line_one() -> None:
    cause = only(compare(of(EVENTS, delegationDepth=0), of(EVENTS, delegationDepth=1)))

    assert (cause.line, cause.path, cause.message) == (1, "delegationDepth", "session differs")
    assert (cause.turn, cause.step) == (None, None)


def test_a_changed_frame_names_its_session_turn_and_step() -> None:
    frames = [*FRAMES[:2], tool("1.1.1", "failed", text="output"), *FRAMES[3:]]

    cause = only(compare(run([], FRAMES), run([], frames)))

    assert cause == Cause(
        records=cause.records,
        surface="transcript",
        file="stdout.expected.jsonl",
        session="1",
        turn=1,
        step=1,
        line=3,
        path="params.update.status",
        expected='"completed"',
        actual='"failed"',
        message="update tool_call_update differs",
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), (0, False), (1, "1"), (None, 0), ([], {}), (2**63, 2.0**63)],
)
def test_types_are_strict(left: object, right: object) -> None:
    causes = compare(of([event("x", {"v": left})]), of([event("x", {"v": right})]))

    assert only(causes).path == "data.v"


def test_the_order_of_keys_does_not_matter() -> None:
    left = [event("x", {"a": 1, "b": {"c": SESSION, "d": MESSAGE}})]
    right = [{"data": {"b": {"d": MESSAGE, "c": SESSION}, "a": 1}, "type": "x"}]

    assert compare(of(left), of(right)) == []


def test_the_order_of_a_list_matters() -> None:
    cause = only(compare(of([event("x", {"v": [1, 2]})]), of([event("x", {"v": [2, 1]})])))

    assert cause.path == "data.v[0]"


@pytest.mark.parametrize(
    ("left", "right", "path", "texts"),
    [
        ({"a": 1}, {}, "data.a", ("1", "nothing")),
        ({}, {"a": 1}, "data.a", ("nothing", "1")),
        ({"a": [1]}, {"a": [1, 2]}, "data.a[1]", ("nothing", "2")),
        ({"a": [1, 2]}, {"a": [1]}, "data.a[1]", ("2", "nothing")),
        ({"a": None}, {"a": {"b": 1}}, "data.a", ("null", '{"b":1}')),
    ],
)
def test_what_one_side_lacks_is_called_nothing(
    left: object, right: object, path: str, texts: tuple[str, str]
) -> None:
    cause = only(compare(of([event("x", left)]), of([event("x", right)])))

    assert (cause.path, (cause.expected, cause.actual)) == (path, texts)


def test_an_inserted_event_is_one_cause_not_one_per_later_reference() -> None:
    more = [event("session/title", {"title": "t"}), *EVENTS]
    shifted = [
        one | {"sourceEventSeqs": [k + 1 for k in one["sourceEventSeqs"]]}
        if "sourceEventSeqs" in one
        else one
        for one in more
    ]

    cause = only(compare(of(EVENTS), of(shifted)))

    assert cause.message == "unexpected session/title after this line"
    assert (cause.line, cause.expected, cause.folded) == (1, "nothing", 0)
    assert cause.actual == '{"data":{"title":"t"},"type":"session/title"}'


def test_a_missing_event_is_one_cause_that_names_its_line() -> None:
    less = EVENTS[:4] + EVENTS[5:]
    shifted = [
        one | {"sourceEventSeqs": [3, 4, 5]} if one["type"] == "assistant/message" else one
        for one in less
    ]

    cause = only(compare(of(EVENTS), of(shifted)))

    assert (cause.line, cause.message) == (6, "assistant/chunk is missing")
    assert cause.actual == "nothing"


def test_a_run_of_missing_events_is_one_cause() -> None:
    cause = only(compare(of(EVENTS), of(EVENTS[:8])))

    assert (cause.message, cause.folded, cause.line) == ("tool/result is missing", 2, 10)


def test_an_event_in_another_place_is_told_as_such() -> None:
    moved = [*EVENTS[:8], EVENTS[9] | {"sourceEventSeqs": [3, 4, 5, 6]}, EVENTS[8], EVENTS[10]]

    cause = only(compare(of(EVENTS), of(moved)))

    assert "came in another place" in cause.message
    assert cause.actual == "it came after assistant/message"


def test_a_record_that_came_first_is_told_as_such() -> None:
    frames = [FRAMES[1], FRAMES[0], *FRAMES[2:]]

    cause = only(compare(run([], FRAMES[:2]), run([], frames[:2])))

    assert cause.message == "answer came in another place"
    assert cause.actual == "it came after update tool_call"
    back = only(compare(run([], frames[:2]), run([], FRAMES[:2])))
    assert back.actual in {"it came first", "it came after answer"}


def test_wrong_references_are_told() -> None:
    wrong = [
        one | {"sourceEventSeqs": [3, 4, 5]} if one["type"] == "assistant/message" else one
        for one in EVENTS
    ]

    cause = only(compare(of(EVENTS), of(wrong)))

    assert cause.message == "assistant/message refers to other events"
    assert (cause.path, cause.expected, cause.actual) == (
        "sourceEventSeqs",
        "[3,4,5,6]",
        "[3,4,5]",
    )


def test_an_event_taken_out_by_hand_is_one_cause() -> None:
    less = EVENTS[:1] + EVENTS[2:]

    assert only(compare(of(less), of(EVENTS))).message == "unexpected step/start after this line"
    assert only(compare(of(EVENTS), of(less))).message == "step/start is missing"


def test_a_replaced_range_is_a_reference() -> None:
    def replacing(start: int) -> Events:
        operation = {"op": "replace", "start": start, "end": 2}
        return [*EVENTS, user("summary", OTHER, surfaceOp=operation)]

    assert compare(of(replacing(1)), of(replacing(1))) == []
    assert only(compare(of(replacing(1)), of(replacing(0)))).path == "surfaceOp"


def test_a_swapped_id_is_reported_as_such() -> None:
    frames = [answered(0, sessionId=SESSION), answered(1, sessionId=CHILD), said("a"), said("b")]
    swapped = [*frames[:3], said("b", CHILD)]

    cause = only(compare(run([], frames), run([], swapped)))

    assert cause.message == "swapped id in update agent_message_chunk"
    assert (cause.path, cause.line) == ("params.sessionId", 4)
    assert (cause.expected, cause.actual) == ('"{{session:1}}"', '"{{session:2}}"')


def test_a_swapped_id_is_found_in_lists_too() -> None:
    left = [event("x", {"of": [{"to": "none"}, {"to": [OTHER, CHILD]}]})]
    right = [event("x", {"of": [{"to": "none"}, {"to": [OTHER, OTHER]}]})]

    cause = only(compare(of(left), of(right)))

    assert (cause.message, cause.path) == ("swapped id in x", "data.of[1].to[1]")


def test_two_ids_that_became_one_are_a_swapped_id() -> None:
    left = [user("a", MESSAGE), user("b", OTHER)]
    right = [user("a", MESSAGE), user("b", MESSAGE)]

    cause = only(compare(of(left), of(right)))

    assert (cause.message, cause.path) == ("swapped id in user/message", "data.id")
    assert only(compare(of(right), of(left))).message == "swapped id in user/message"


def test_ids_are_compared_across_both_surfaces() -> None:
    shown = frame("agent_message_chunk", content={"type": "text", "text": OTHER})
    first = run([log([user("a", MESSAGE), user("b", OTHER)])], [shown])
    mixed = frame("agent_message_chunk", content={"type": "text", "text": MESSAGE})

    cause = only(compare(first, run([log([user("a", MESSAGE), user("b", OTHER)])], [mixed])))

    assert (cause.surface, cause.path) == ("transcript", "params.update.content.text")


def test_a_new_id_does_not_shift_those_after_it() -> None:
    events = [user("a", MESSAGE), user("b", OTHER)]
    more = [user("new", CHILD), *events]

    assert only(compare(of(events), of(more))).message == "unexpected user/message after this line"


def test_json_rpc_ids_are_compared_by_bijection() -> None:
    frames = [{"id": n, "method": "fs/read", "params": {"n": n}} for n in (4, 9)]
    extra = {"id": 2, "method": "other", "params": {}}

    assert only(compare(run([], frames), run([], [extra, *frames]))).message == (
        "unexpected other at the beginning"
    )


def test_a_swapped_json_rpc_id_is_reported_as_such() -> None:
    asks = [{"id": n, "method": "fs/read", "params": {"n": n}} for n in (4, 9)]
    again = {"id": 4, "method": "fs/stop", "params": {}}
    wrong = again | {"id": 9}

    cause = only(compare(run([], [*asks, again]), run([], [*asks, wrong])))

    assert (cause.message, cause.path) == ("swapped id in fs/stop", "id")
    assert (cause.expected, cause.actual) == ("1", "2")


def test_the_clients_ids_and_the_agents_are_apart() -> None:
    frames = [answered(1, a=1), {"id": 1, "method": "fs/read", "params": {}}, answered(2, a=2)]

    assert compare(run([], frames), run([], frames)) == []


def test_a_missing_session_is_one_cause() -> None:
    child = log(EVENTS, id=CHILD, lineage="1/1.1.1")
    both = run([log(EVENTS, lineage="1"), replace(child, name="session.1.jsonl")])

    cause = only(compare(both, of(EVENTS, lineage="1")))

    assert cause == Cause(
        surface="log",
        file="session.1.jsonl",
        session="1/1.1.1",
        turn=None,
        step=None,
        line=1,
        path="",
        expected="a session with 11 events",
        actual="nothing",
        message="this session is missing",
        folded=11,
    )


def test_an_unexpected_session_is_one_cause() -> None:
    child = log(EVENTS, id=CHILD)

    cause = only(compare(of(EVENTS), run([log(EVENTS), child])))

    assert (cause.file, cause.session, cause.line) == ("session.1.jsonl", "2", None)
    assert (cause.message, cause.expected) == ("an unexpected session", "nothing")
    assert cause.actual == "a session with 11 events"


def test_an_unexpected_primary_session_is_called_by_its_file() -> None:
    assert only(compare(run(), of(EVENTS))).file == "session.jsonl"


def test_logs_are_paired_by_lineage_where_all_have_one() -> None:
    logs = [log(EVENTS, lineage="1"), log(EVENTS[:3], id=CHILD, lineage="1/1.1.2")]
    between = log(EVENTS[:2], id=OTHER, lineage="1/1.1.1")

    cause = only(compare(run(logs), run([logs[0], between, logs[1]])))

    assert (cause.session, cause.message) == ("1/1.1.1", "an unexpected session")


@pytest.mark.parametrize("lineages", [("1", None), ("1", "1"), ("1", 3)])
def test_logs_are_paired_by_order_where_lineages_do_not_tell(lineages: tuple[Any, Any]) -> None:
    logs = [log(EVENTS[: n + 2]) for n in range(2)]
    for one, lineage in zip(logs, lineages, strict=True):
        one.header.raw["lineage"] = lineage

    assert compare(run(logs), run(logs)) == []
    assert only(compare(run(logs), run(logs[:1]))).message == "this session is missing"


def test_an_early_difference_in_the_transcript_comes_before_a_later_one_in_the_log() -> None:
    second = [event("turn/start", {"turn": 2}), result("x", 2), event("turn/end", {"turn": 2})]
    changed = [second[0], result("y", 2), second[2]]
    frames = [*FRAMES[:3], said("other"), *FRAMES[4:]]

    causes = compare(
        run([log([*EVENTS, *second])], FRAMES), run([log([*EVENTS, *changed])], frames)
    )

    assert [(cause.surface, cause.turn) for cause in causes] == [("transcript", 1), ("log", 2)]


def test_in_one_turn_the_log_comes_first_and_the_same_difference_is_folded() -> None:
    changed = [*EVENTS[:8], result("other"), *EVENTS[9:]]
    frames = [*FRAMES[:2], tool("1.1.1", "completed", text="other"), *FRAMES[3:]]

    cause = only(compare(run([log(EVENTS)], FRAMES), run([log(changed)], frames)))

    assert (cause.surface, cause.folded) == ("log", 1)


def test_an_event_of_another_type_in_the_same_place_is_missing_and_unexpected() -> None:
    changed = [*EVENTS[:8], event("tool/other", EVENTS[8]["data"]), *EVENTS[9:]]

    causes = compare(of(EVENTS), of(changed))

    assert [cause.message for cause in causes] == [
        "tool/result is missing",
        "unexpected tool/other after this line",
    ]


def test_what_is_unexpected_is_told_before_what_differs_after_it() -> None:
    committed = [event("x", {"v": 1}), event("y", {"v": 1})]
    actual = [event("x", {"v": 1}), event("new"), event("y", {"v": 2})]

    causes = compare(of(committed), of(actual))

    assert [cause.message for cause in causes] == ["unexpected new after this line", "y differs"]


def test_the_id_of_an_event_has_nothing_to_do_with_those_of_frames() -> None:
    events = [log([event("x", id=2)])]
    frames = [answered(1, a=1), answered(2, b=1)]

    cause = only(compare(run(events, frames), run(events, [answered(3, new=1), *frames])))

    assert cause.message == "unexpected answer at the beginning"


def test_only_the_first_difference_of_a_record_is_a_cause() -> None:
    left, right = event("x", {"a": 1, "b": 1}), event("x", {"a": 2, "b": 2})

    assert only(compare(of([left]), of([right]))).path == "data.a"


def test_a_placeholder_of_a_literal_log_stands_for_what_the_run_made_of_it() -> None:
    literal = [*answer("say {{fromRequest:\\d{4}}} now")]
    expected = normalize_fixture([log(literal)], [], rules=RULES)

    assert compare(expected, of(answer("say 1234 now"))) == []
    assert only(compare(expected, of(answer("tell 1234 now")))).path == "data.chunk.text"


def test_a_placeholder_stands_for_an_id_too() -> None:
    literal = [event("x", {"text": "session {{fromRequest:.*}} is gone"})]
    expected = normalize_fixture([log(literal)], [], rules=RULES)

    assert compare(expected, of([event("x", {"text": f"session {OTHER} is gone"})])) == []


def test_causes_are_bounded_and_the_rest_is_counted() -> None:
    left = [event(f"x{n}", {"v": f"left {n}"}) for n in range(400)]
    right = [event(f"x{n}", {"v": f"right {n}"}) for n in range(400)]

    causes = compare(of(left), of(right))

    assert len(causes) == 50
    assert sum(1 + cause.folded for cause in causes) == 400
    assert render(causes).endswith("and 395 more differences")


def test_ten_thousand_differing_lines_are_compared_in_seconds() -> None:
    left = [event("x", {"turn": 1, "step": 1, "v": f"left {n}"}) for n in range(10_000)]
    right = [event("x", {"turn": 1, "step": 1, "v": f"right {n}"}) for n in range(10_000)]
    expected, actual = of(left), of(right)
    started = time.process_time()

    causes = compare(expected, actual)

    assert time.process_time() - started < 10
    assert (causes[0].line, causes[0].expected, causes[0].actual) == (2, '"left 0"', '"right 0"')


@pytest.mark.parametrize("turned", [False, True])
def test_ten_thousand_lines_too_many_are_one_cause(*, turned: bool) -> None:
    many = of([event("x", {"turn": 1, "v": f"{n}"}) for n in range(10_000)])
    sides = (many, of([])) if turned else (of([]), many)
    started = time.process_time()

    cause = only(compare(*sides))

    assert time.process_time() - started < 10
    assert cause.folded == 9_999


@pytest.mark.parametrize("repeats", [(3, 7), (1, 2)])
def test_ten_thousand_lines_that_repeat_are_compared_in_seconds(repeats: tuple[int, int]) -> None:
    sides = [
        of([event("x", {"v": "a" if n % every else "b"}) for n in range(10_000)])
        for every in repeats
    ]
    started = time.process_time()

    causes = compare(*sides)

    assert causes
    assert time.process_time() - started < 20


def test_an_event_inserted_before_ten_thousand_is_one_cause() -> None:
    events = [
        event("x", {"v": f"{n}"}, **({"sourceEventSeqs": [n - 1]} if n else {}))
        for n in range(10_000)
    ]
    more = [
        event("x", {"v": f"{n}"}, **({"sourceEventSeqs": [n]} if n else {})) for n in range(10_000)
    ]

    cause = only(compare(of(events), of([event("new", {}), *more])))

    assert cause.message == "unexpected new after this line"


def test_a_five_megabyte_line_is_told_in_a_few_hundred_characters() -> None:
    text = "word " * 1_000_000
    changed = f"{text[:4_000_000]}X{text[4_000_000:]}"
    started = time.process_time()

    told = render(compare(run([], [said(text)]), run([], [said(changed)])))

    assert time.process_time() - started < 20
    assert len(told) < 1000
    assert "Xword" in told
    assert "characters, then" in told


def test_a_cause_is_told_with_place_path_and_both_values() -> None:
    changed = [*EVENTS[:8], result("other"), *EVENTS[9:]]

    told = render(compare(of(EVENTS), of(changed)), directory="scenarios/x")

    assert told == (
        "scenarios/x/session.jsonl:10: session 1, turn 1, step 1: tool/result differs\n"
        "  at:       data.message.text\n"
        '  expected: "output"\n'
        '  actual:   "other"'
    )


def test_the_records_around_the_causes_are_shown_as_a_diff() -> None:
    changed = [*EVENTS[:8], result("other"), EVENTS[9], event("new", {})]

    assert diff(compare(of(EVENTS), of(changed))) == (
        "  @@ session.jsonl:10\n"
        '  - {"data":{"message":{"text":"output"},"step":1,"turn":1},"type":"tool/result"}\n'
        '  + {"data":{"message":{"text":"other"},"step":1,"turn":1},"type":"tool/result"}\n'
        "  @@ session.jsonl:12\n"
        '  - {"data":{"reason":{"kind":"completed"},"turn":1},"type":"turn/end"}\n'
        "  @@ session.jsonl:11\n"
        '  + {"data":{},"type":"new"}'
    )


def test_a_diff_is_bounded() -> None:
    left = [event(f"x{n}", {"v": "l" * 1000}) for n in range(20)]
    right = [event(f"x{n}", {"v": f"{n}" * 1000}) for n in range(20)]

    lines = diff(compare(of(left), of(right))).split("\n")

    assert len(lines) == 18
    assert max(map(len, lines)) < 250


def test_folded_differences_are_counted_in_words() -> None:
    less = compare(of(EVENTS), of(EVENTS[:9]))
    assert render(less).endswith("  1 later difference follows from it or says the same")

    fewer = compare(of(EVENTS), of(EVENTS[:8]))
    assert render(fewer).endswith("  2 later differences follow from it or say the same")


def test_a_cause_without_a_line_or_place_is_told_by_its_file() -> None:
    told = render(compare(run(), of(EVENTS)))

    assert told.startswith("session.jsonl: session 1: an unexpected session\n  expected: nothing")


def test_one_more_difference_is_singular() -> None:
    left = [event(f"x{n}", {"v": 1 + n}) for n in range(2)]
    right = [event(f"x{n}", {"v": 10 + n}) for n in range(2)]

    assert render(compare(of(left), of(right)), limit=1).endswith("and 1 more difference")


def test_lone_surrogates_are_compared_and_told() -> None:
    cause = only(compare(of(answer("\ud83d")), of(answer("\ud83e"))))

    assert cause.expected == '"\\ud83d"'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(left=st.lists(JSON, max_size=5), right=st.lists(JSON, max_size=5))
def test_exactly_equal_logs_are_equal(left: list[Any], right: list[Any]) -> None:
    sides = [of([event("x", {"v": value}) for value in side]) for side in (left, right)]

    assert compare(sides[0], sides[0]) == []
    assert (compare(*sides) == []) == (fingerprint(left) == fingerprint(right))


def test_runs_that_differ_in_their_ids_alone_are_equal() -> None:
    events = [user("a", MESSAGE), user("b", OTHER), result(f"{SESSION} {OTHER} {MESSAGE}")]
    frames = [answered(0, sessionId=SESSION), said(f"of {MESSAGE}"), said(f"and {OTHER}", CHILD)]
    text = json.dumps([events, frames])
    for name in (SESSION, MESSAGE, OTHER, CHILD):
        text = text.replace(name, str(uuid.uuid4()))
    new_events, new_frames = json.loads(text)
    session = new_frames[0]["result"]["sessionId"]

    other = run([log(new_events, id=session)], new_frames)

    assert compare(run([log(events)], frames), other) == []


@given(data=st.data())
def test_any_single_deletion_insertion_or_change_is_found(data: st.DataObject) -> None:
    base = [event(f"x{n % 4}", {"turn": 1, "v": n % 3}) for n in range(12)]
    place = data.draw(st.integers(0, 11))
    how = data.draw(st.sampled_from(["delete", "insert", "change"]))
    new = {
        "delete": base[:place] + base[place + 1 :],
        "insert": [*base[:place], event("new", {"turn": 1}), *base[place:]],
        "change": [*base[:place], event(base[place]["type"], {"v": 9}), *base[place + 1 :]],
    }[how]

    assert compare(of(base), of(new))
