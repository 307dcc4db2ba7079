import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import FINISH, Json, asked, chunks, event, json_values, row, rows, text

from llm_replay.chunks import PARTIAL
from llm_replay.derive import derive_calls
from llm_replay.exceptions import OverrideError
from llm_replay.override import (
    Patches,
    Replacement,
    apply_override,
    parse_override,
    repeats_log,
)

HANG: Json = {"kind": "hang"}
THROW: Json = {"kind": "throw", "chunks": [text("a")], "message": "no", "code": "SERVER"}
FORMS = 'must be a list of entries, {"patches": […]} or {"sessions": {"1": …}}'
HANG_KEYS = "entry 0: a hang entry must have exactly kind, and may have chunks and readyFile"
THROW_KEYS = "entry 0: a throw entry must have exactly kind, chunks, message, code"
TYPES = (
    "must be one of block-start, text-delta, reasoning-delta, tool-call-delta, block-end, "
    "usage, finish"
)
NUMBER = "must be the number of a session's file, such as '0' or '1'"
HINT = "an override is a list of entries, or patches for single calls; see the README"


def problems(document: object, *, sessions: int | None = None) -> list[str]:
    with pytest.raises(OverrideError) as caught:
        parse_override(json.dumps(document), where="o.json", sessions=sessions)
    return [str(problem) for problem in caught.value.problems]


def patches(*pairs: tuple[float, Json]) -> Json:
    return {"patches": [{"at": at, "entry": entry} for at, entry in pairs]}


def test_a_list_replaces_the_script_of_the_primary() -> None:
    found = parse_override(json.dumps([HANG, THROW]), where="o.json")

    assert found == {0: Replacement([HANG, THROW])}


def test_patches_change_single_calls_of_the_primary() -> None:
    found = parse_override(json.dumps(patches((2, HANG), (0.0, THROW))), where="o.json")

    assert found == {0: Patches({2: HANG, 0: THROW})}


def test_sessions_hold_either_form_for_each_file() -> None:
    document = {"sessions": {"0": [HANG], "2": patches((0, THROW))}}

    assert parse_override(json.dumps(document), where="o.json", sessions=3) == {
        0: Replacement([HANG]),
        2: Patches({0: THROW}),
    }


def test_entries_come_out_in_one_order_of_keys_and_chunks_as_they_are() -> None:
    odd = {"type": "usage", "usage": None, "more": [1]}
    given_entry = {"code": "C", "chunks": [odd], "message": "m", "kind": "throw"}
    [override] = parse_override(json.dumps([given_entry]), where="o.json").values()

    assert isinstance(override, Replacement)
    assert list(override.entries[0]) == ["kind", "chunks", "message", "code"]
    assert override.entries == [given_entry]


def test_a_hang_may_have_chunks_of_its_own_and_a_file_to_make() -> None:
    entry = {"kind": "hang", "chunks": [text("a")], "readyFile": "ready"}

    assert parse_override(json.dumps([entry]), where="o.json") == {0: Replacement([entry])}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (None, FORMS),
        ({}, FORMS),
        ({"patches": [], "more": 1}, FORMS),
        ({"sessions": {}, "patches": []}, FORMS),
        ({"patches": {}}, "patches: must be a list"),
        ({"patches": [[]]}, "patch 0: must have exactly the keys at and entry"),
        ({"patches": [{"at": 0}]}, "patch 0: must have exactly the keys at and entry"),
        (patches((-1, HANG)), "patch 0.at: must be an integer from 0 to 2^53-1"),
        (patches((0.5, HANG)), "patch 0.at: must be an integer from 0 to 2^53-1"),
        (patches((0, HANG), (0.0, HANG)), "patch 1.at: another patch stands at 0 already"),
        (patches((0, {"kind": 1})), "patch 0.entry.kind: must be chunks, throw or hang, not 1"),
        ([1], "entry 0: must be an object"),
        ([{}], "entry 0.kind: must be chunks, throw or hang, not None"),
        ([{"kind": []}], "entry 0.kind: must be chunks, throw or hang, not []"),
        ([{"kind": "chunks"}], "entry 0: a chunks entry must have exactly kind, chunks"),
        ([{**HANG, "x": 1}], HANG_KEYS),
        ([{**THROW, "x": 1}], THROW_KEYS),
        ([{**THROW, "message": ""}], "entry 0.message: must be a string that is not empty"),
        ([{**THROW, "code": 1}], "entry 0.code: must be a string that is not empty"),
        ([{**HANG, "readyFile": None}], "entry 0.readyFile: must be a string that is not empty"),
        ([chunks() | {"chunks": {}}], "entry 0.chunks: must be a list"),
        ([chunks(FINISH, "x")], "entry 0.chunks[1]: must be an object"),
        ([chunks({"type": []})], f"entry 0.chunks[0].type: {TYPES}"),
        ({"sessions": []}, 'sessions: must be an object such as {"1": {"patches": […]}}'),
        ({"sessions": {"01": []}}, f"session 01: {NUMBER}"),
        ({"sessions": {"²": []}}, f"session ²: {NUMBER}"),
        ({"sessions": {"9" * 5000: []}}, f"session {'9' * 5000}: {NUMBER}"),
        ({"sessions": {"1": {}}}, 'session 1: must be a list of entries or {"patches": […]}'),
        ({"sessions": {"1": [1]}}, "session 1, entry 0: must be an object"),
        ({"sessions": {"1": {"patches": 1}}}, "session 1, patches: must be a list"),
    ],
)  # fmt: skip
def test_what_an_override_cannot_say_is_told_with_its_place(document: object, told: str) -> None:
    assert problems(document) == [told]


def test_a_session_without_a_file_is_told() -> None:
    assert problems({"sessions": {"2": [HANG]}}, sessions=2) == [
        "session 2: there is no such file; the last one is 1"
    ]


def test_all_problems_are_told_at_once() -> None:
    document = patches((-1, {"kind": "nope"}), (0, chunks(1, {"type": "x"}, FINISH)))
    with pytest.raises(OverrideError) as caught:
        parse_override(json.dumps(document), where="replay.override.json")

    assert str(caught.value) == (
        "replay.override.json: 4 problems\n"
        "  patch 0.entry.kind: must be chunks, throw or hang, not 'nope'\n"
        "  patch 0.at: must be an integer from 0 to 2^53-1\n"
        "  patch 1.entry.chunks[0]: must be an object\n"
        f"  patch 1.entry.chunks[1].type: {TYPES}\n"
        f"  hint: {HINT}"
    )


def test_what_is_no_json_is_told_with_line_and_column() -> None:
    with pytest.raises(OverrideError) as caught:
        parse_override("[\n  oops\n]", where="o.json")

    assert str(caught.value) == (
        "o.json: 1 problem\n"
        "  line 2, column 3: this is not JSON: unexpected character, expected a JSON value\n"
        f"  hint: {HINT}"
    )


def test_lone_surrogates_survive() -> None:
    assert parse_override(b'[{"kind":"hang","readyFile":"\\ud800"}]', where="o.json") == {
        0: Replacement([{"kind": "hang", "readyFile": "\ud800"}])
    }


def test_without_an_override_entries_are_derived() -> None:
    calls = derive_calls([asked(), *rows(FINISH, text("cut"))])

    assert apply_override(calls, None) == [chunks(FINISH), None]


def test_patches_stand_in_for_calls_and_append_and_no_more() -> None:
    calls = derive_calls(rows(FINISH, FINISH))

    assert apply_override(calls, Patches({2: THROW, 0: HANG})) == [HANG, chunks(FINISH), THROW]
    with pytest.raises(OverrideError, match="patch at 3: the script has 2 calls; 2 appends"):
        apply_override(calls, Patches({3: THROW}), where="o.json")
    with pytest.raises(OverrideError, match=r": 2 problems\n  patch at 3: .*\n  patch at 9: "):
        apply_override(calls, Patches({9: HANG, 3: THROW, 2: HANG}), where="o.json")


def test_an_override_that_says_what_the_log_derives_to_is_found() -> None:
    calls = derive_calls([*rows(text("a"), FINISH), asked(call=2), *rows(*PARTIAL)])
    said, cut = chunks(text("a"), FINISH), {"kind": "hang"}

    assert repeats_log(Replacement([said, cut]), calls)
    assert repeats_log(Patches({1: cut}), calls)
    assert repeats_log(Patches({}), calls)
    assert not repeats_log(Replacement([said]), calls)
    assert not repeats_log(Patches({0: cut}), calls)
    assert not repeats_log(Patches({1: {**cut, "readyFile": "x"}}), calls)
    assert not repeats_log(Patches({2: said}), calls)


def test_an_override_for_a_hole_does_not_say_what_the_log_derives_to() -> None:
    calls = derive_calls([asked(), event("turn/end", reason={"kind": "error"}), row(FINISH)])

    assert not repeats_log(Patches({0: THROW}), calls)


@given(
    st.one_of(
        json_values,
        st.lists(json_values | st.fixed_dictionaries({"kind": st.just("hang"), "x": json_values})),
        st.fixed_dictionaries({"patches": st.lists(json_values)}),
        st.fixed_dictionaries({"sessions": json_values}),
    )
)
def test_random_documents_are_read_or_refused_and_nothing_else(document: object) -> None:
    try:
        found = parse_override(json.dumps(document), where="o.json")
    except OverrideError as error:
        assert error.problems  # noqa: PT017  which of the two it is does not matter
    else:
        assert all(isinstance(place, int) for place in found)
