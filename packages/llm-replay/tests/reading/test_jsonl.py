import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import json_values

from llm_replay.exceptions import SessionLogError
from llm_replay.jsonl import as_lines, dump_line, find_lossy, loads, lossy_parts, numbered_objects


def read(data: bytes | str) -> list[tuple[int, object]]:
    return list(numbered_objects(as_lines(data), "a.jsonl"))


def complaint(data: bytes | str) -> str:
    with pytest.raises(SessionLogError) as caught:
        read(data)
    return str(caught.value)


def test_lines_end_at_lf_and_crlf_and_nowhere_else() -> None:
    data = '{"a":1}\r\n{"b":"\u2028"}\n\n \t\r\n{"c":3}'

    assert read(data) == [(1, {"a": 1}), (2, {"b": "\u2028"}), (5, {"c": 3})]


def test_lone_surrogates_survive_reading_and_writing() -> None:
    line = b'{"a":"\\ud83d","b":"\\udc00x","c":"\\u00e9 \\\\ud800"}\n'
    [(_, value)] = read(line)

    assert value == {"a": "\ud83d", "b": "\udc00x", "c": "é \\ud800"}
    assert json.loads(dump_line(value)) == value
    assert read(dump_line(value)) == [(1, value)]


def test_beside_a_lone_surrogate_numbers_read_as_everywhere_else() -> None:
    numbers = b"[1,-0,1.5,1e3,9007199254740993,18446744073709551615,18446744073709551616,-1e-7]"
    with_surrogate = b'{"a":"\\ud800","n":' + numbers + b"}"
    without = b'{"a":"","n":' + numbers + b"}"

    assert loads(with_surrogate, name="a")["n"] == loads(without, name="a")["n"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_numbers_that_json_does_not_have_are_refused_also_beside_surrogates(number: str) -> None:
    assert "this is not JSON" in complaint(f'{{"a":"\\ud800","n":{number}}}\n')
    assert "this is not JSON" in complaint(f'{{"a":"","n":{number}}}\n')


@given(json_values)
def test_any_value_survives_writing_and_reading(value: object) -> None:
    assert loads(dump_line(value), name="x") == value


@given(st.binary())
def test_random_bytes_read_or_are_refused_and_nothing_else(data: bytes) -> None:
    try:
        found = read(data)
    except SessionLogError as error:
        assert error.line  # noqa: PT017  which of the two it is does not matter
    else:
        assert all(isinstance(value, dict) for _, value in found)


def test_a_line_that_is_no_object_is_refused_with_its_number() -> None:
    assert complaint("{}\n\n[1]\n") == "a.jsonl:3:1: this line is not a JSON object"


def test_a_syntax_error_is_told_with_line_and_column() -> None:
    told = "a.jsonl:2:8: this is not JSON: unexpected character, expected a JSON value"

    assert complaint('{}\n{"é":  x}\n') == told


def test_a_line_cut_in_the_middle_is_named_as_such() -> None:
    assert complaint('{}\n{"a":"x') == (
        "a.jsonl:2:8: this is not JSON: unexpected end of data\n"
        "  The file ends in this line; it may have been cut off."
    )


def test_a_byte_order_mark_is_named() -> None:
    assert complaint(b"\xef\xbb\xbf{}\n") == (
        "a.jsonl:1:1: a byte-order mark\n  hint: save the file as UTF-8 without one"
    )


@pytest.mark.parametrize("mark", ["<<<<<<< HEAD", "=======", ">>>>>>> theirs", "||||||| base"])
def test_a_merge_conflict_is_named(mark: str) -> None:
    assert complaint(f"{{}}\n{mark}\n") == (
        "a.jsonl:2:1: a merge-conflict marker\n"
        "  hint: resolve the conflict, or refresh the scenario"
    )


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80"])
def test_bytes_that_are_not_utf8_are_named_with_their_column(bad: bytes) -> None:
    assert complaint(b'{}\n{"a":"\xc3\xa9' + bad + b'"}\n') == (
        "a.jsonl:2:8: these bytes are not UTF-8\n  hint: record the scenario again"
    )


def test_a_text_with_a_lone_surrogate_of_its_own_is_not_utf8() -> None:
    assert "not UTF-8" in complaint('{"a":"\ud800"}\n')


@pytest.mark.parametrize("line", ['{"a":"\x00"}\n', '{"a":"\t"}\n', '{"a":"\\ud800\x00"}\n'])
def test_control_characters_in_strings_are_refused(line: str) -> None:
    assert "control character" in complaint(line).lower()


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("NaN", "11: this is not JSON: unexpected character, expected a JSON value"),
        ("1e999", "11: this is not JSON: number is infinity when parsed as double"),
        ("[}", "12: this is not JSON: unexpected character, expected a JSON value"),
        ('"\\ud8', "16: this is not JSON: unexpected end of data"),
    ],
)
def test_what_is_wrong_beside_a_lone_surrogate_is_told_with_its_column(
    rest: str, told: str
) -> None:
    assert f"a.jsonl:1:{told}" in complaint(f'["\\ud83d",{rest}\n')


def test_nesting_without_end_is_refused_also_beside_surrogates() -> None:
    deep = "[" * 100_000

    assert "depth limit exceeded" in complaint(f'{{"a":{deep}\n')
    assert "depth limit exceeded" in complaint(f'{{"s":"\\ud800","a":{deep}\n')


def test_what_a_versions_own_reader_gives_up_on_is_refused_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def give_up(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(json, "loads", give_up)

    assert "this is not JSON: nested too deeply" in complaint('{"s":"\\ud800"}\n')


def test_what_is_nested_too_deeply_to_write_is_refused() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(SessionLogError, match="this value is nested too deeply to be written"):
        dump_line(value)


def test_a_syntax_error_in_a_document_of_many_lines_is_told_with_its_line() -> None:
    with pytest.raises(SessionLogError) as caught:
        loads(b'[\n  {"a": oops}\n]\n', name="o.json")

    assert str(caught.value).startswith("o.json:2:9: this is not JSON")


def test_bytes_of_a_document_that_are_not_utf8_are_told_with_their_line() -> None:
    with pytest.raises(SessionLogError, match=r"^o.json:2:3: these bytes are not UTF-8"):
        loads(b'[\n "\xff"]', name="o.json")


def test_what_readers_take_differently_is_found() -> None:
    big = "9" * 5000
    line = f'{{"a":1,"a":{{"b":2,"b":3}},"n":[18446744073709551616,-9223372036854775809,{big}]}}'

    assert find_lossy(line.encode()) == [
        "the key 'a' stands twice in one object",
        "the key 'b' stands twice in one object",
        "the integer 18446744073709551616 does not fit into 64 bits",
        "the integer -9223372036854775809 does not fit into 64 bits",
        "the integer 999999999999999999999999 does not fit into 64 bits",
    ]


def test_a_line_that_all_readers_take_alike_has_nothing_to_find() -> None:
    assert find_lossy(b'{"a":[18446744073709551615,-9223372036854775808,1.5],"b":{"a":1}}') == []


def test_what_readers_take_differently_is_found_with_its_place() -> None:
    document = '{"a": [1,\n  {"é": {}, "b": "9e99", "b": -1e2}],\n "n": 18446744073709551616}'

    assert lossy_parts(document.encode()) == [
        (2, 26, "the key 'b' stands twice in one object"),
        (3, 7, "the integer 18446744073709551616 does not fit into 64 bits"),
    ]
