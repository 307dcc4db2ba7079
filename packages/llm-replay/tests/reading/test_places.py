import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import HEADER, Json, json_values, lines

from llm_replay.exceptions import SessionLogError
from llm_replay.places import column_of, deep_place, lossy_places, members_at
from llm_replay.session_log import read_session_log

TEXT: Json = {"turn": 1, "step": 1, "index": 0, "dt": [1, 2], "texts": ["a", "b", "c"]}
TOOL: Json = {
    "turn": 1,
    "step": 1,
    "index": 0,
    "dt": [1],
    "id": "c",
    "name": "n",
    "args": ["a", "b"],
}
SAFE = 2**53 - 1


def marked(text: str) -> tuple[str, int]:
    """Take the mark out of a text, and return the column that it stood before."""
    column = text.index("^") + 1
    return text.replace("^", "", 1), column


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('^{"a":1}', []),
        ('  ^{"a":1}', []),
        ('{^"a":1}', ["a"]),
        ('{"b":{"a":2} , ^"a"  : 1}', ["a"]),
        ('{"a":[10, ^[20]]}', ["a", 1]),
        ('{"a":[{"b":"]"},{^"b":[]}]}', ["a", 1, "b"]),
        ('{"a":1,^"a":2}', ["a"]),
        ('{"\\"":1,"é":"{",^"a":2}', ["a"]),
        ('^{"a":1}', ["b"]),
        ('{"a":^{"b":1}}', ["a", "c"]),
        ('{"a":^[1]}', ["a", 1]),
        ('{"a":^"text"}', ["a", 0]),
        ('{"a":^[]}', ["a", 0, "x"]),
    ],
)
def test_a_member_is_found_at_its_key_or_else_what_it_is_missing_in(
    text: str, path: list[str | int]
) -> None:
    bare, column = marked(text)

    assert column_of(bare, path) == column


@given(st.lists(json_values) | st.dictionaries(st.text(), json_values), st.sampled_from([None, 1]))
def test_members_are_found_in_any_value_however_it_is_written(
    value: Any,  # noqa: ANN401  JSON
    indent: int | None,
) -> None:
    text = json.dumps(value, indent=indent)
    read = json.JSONDecoder().raw_decode
    found = [(member.key, read(text, member.value)[0]) for member in members_at(text, 0)]

    assert found == list(value.items() if isinstance(value, dict) else enumerate(value))


def test_a_long_integer_stands_in_nobodys_way() -> None:
    assert column_of(f'{{"a":{"9" * 5000},"b":NaN,"c":1}}', ["c"]) == 5015


def test_the_first_bracket_that_is_too_deep_is_found() -> None:
    assert deep_place('{"[[[":"\\"[[",\n "a":[1,{"b":[]}]}', 3) == (2, 14)


def test_what_is_fine_has_no_place() -> None:
    assert lossy_places('{"a":[1,{"a":-2.5e9}],"b":1e400}', lambda _: True) == []


def complaint(text: str) -> str:
    with pytest.raises(SessionLogError) as caught:
        read_session_log(text, name="a.jsonl")
    return str(caught.value).splitlines()[0]


def row(tag: str = "text-chunks", data: object = TEXT, **keys: object) -> Json:
    return {"type": tag, **keys, "data": data}


@pytest.mark.parametrize(
    ("record", "place", "told"),
    [
        (row(seq=1), '"seq":', "its keys must be exactly type, seq0, time0, data"),
        ({"type": "text-chunks"}, "{", "its keys must be exactly type, seq0, time0, data"),
        (row(seq0=-1), '"seq0":', "seq0 must be an integer from 0 to 2^53-1"),
        (row(time0="x"), '"time0":', "time0 must be an integer within ±(2^53-1)"),
        (row(data=[]), '"data":', "data must be an object"),
        (
            row(data={**TEXT, "id": "c"}),
            '"id":',
            "data must have exactly the keys turn, step, index, dt, texts",
        ),
        (row(data={}), '"data":', "data must have exactly the keys turn, step, index, dt, texts"),
        (
            row("tool-call-chunks", {**TOOL, "texts": []}),
            '"texts":',
            "data must have exactly the keys turn, step, index, dt, id, name?, args",
        ),
        (row(data={**TEXT, "turn": "1"}), '"turn":', "turn, step and index must be numbers"),
        (row(data={**TEXT, "step": None}), '"step":', "turn, step and index must be numbers"),
        (row(data={**TEXT, "index": []}), '"index":', "turn, step and index must be numbers"),
        (
            row("tool-call-chunks", {**TOOL, "id": 1}),
            '"id":',
            "id, and name where there is one, must be strings",
        ),
        (
            row("tool-call-chunks", {**TOOL, "name": 1}),
            '"name":',
            "id, and name where there is one, must be strings",
        ),
        (
            row(data={**TEXT, "texts": "abc"}),
            '"texts":',
            "texts must be a list of strings, at least one",
        ),
        (
            row(data={**TEXT, "texts": ["a", True, 7]}),
            "true",
            "texts must be a list of strings, at least one",
        ),
        (
            row(data={**TEXT, "dt": None}),
            '"dt":',
            "dt must be a list of integers within ±(2^53-1)",
        ),
        (
            row(data={**TEXT, "dt": [1, 0.5]}),
            "0.5",
            "dt must be a list of integers within ±(2^53-1)",
        ),
        (
            row(data={**TEXT, "dt": [1, SAFE + 1]}),
            str(SAFE + 1),
            "dt must be a list of integers within ±(2^53-1)",
        ),
        (row(data={**TEXT, "dt": [1]}), '"dt":', "dt has 1 gaps for 3 members"),
        (row(seq0=SAFE), '"seq0":', "the seq of its last member leaves ±(2^53-1)"),
        (
            row(time0=SAFE - 5, data={**TEXT, "dt": [4, 44]}),
            "44",
            "the time of a member leaves ±(2^53-1)",
        ),
    ],
)
def test_what_is_wrong_with_a_packed_row_is_told_with_line_and_column(
    record: Json, place: str, told: str
) -> None:
    line = json.dumps(record, separators=(",", ":"))

    assert complaint(f"{lines()}\n{line}\n") == (
        f"a.jsonl:3:{line.index(place) + 1}: a malformed {record['type']} row: {told}"
    )


def test_a_header_without_what_it_needs_is_refused_at_its_beginning() -> None:
    assert complaint('\n  {"id":"x"}\n') == (
        "a.jsonl:2:3: the type of the header is None, not 'session'"
    )


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("member", ["turn", "chunk", "\\ud800"])
def test_a_record_may_nest_200_levels_deep_and_no_deeper(member: str) -> None:
    record = f'{{"type":"x","data":{{"{member}":$}}}}'
    at_most = lines() + record.replace("$", deep(198)) + "\n"

    assert len(read_session_log(at_most).events) == 1
    assert complaint(lines() + record.replace("$", deep(199)) + "\n") == (
        f"a.jsonl:2:{record.index('$') + 199}: this is nested more than 200 levels deep"
    )


def test_a_header_that_nests_too_deeply_is_refused_too() -> None:
    text = json.dumps({**HEADER, "x": 1}).replace("1}", f"{deep(1000)}}}")

    assert complaint(text) == (
        f"a.jsonl:1:{text.index('[') + 200}: this is nested more than 200 levels deep"
    )
