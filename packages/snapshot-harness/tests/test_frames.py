import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_harness.frames import Impurity, LineFramer, encode, parse


def values(framer: LineFramer, data: bytes) -> list[object]:
    return [frame.value for frame in framer.feed(data)]


@given(st.integers(1, 19))
def test_frames_survive_any_cut_of_the_stream(cut: int) -> None:
    stream = b'{"id": 1}\n{"id": 2}\n'
    framer = LineFramer()

    assert values(framer, stream[:cut]) + values(framer, stream[cut:]) == [{"id": 1}, {"id": 2}]


def test_frames_know_their_line_and_blank_lines_count() -> None:
    frames = LineFramer().feed(b'\n{"a":1}\n  \r\n{"b":2}\r\n')

    assert [(frame.line, frame.value) for frame in frames] == [(2, {"a": 1}), (4, {"b": 2})]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"noise", "is not JSON: 'noise'"),
        (b'"text"', "is JSON, but no object"),
        (b"[{}]", "is JSON, but no object"),
        (b'{"a":NaN}', "is not JSON"),
        (b'{"a":-1e999}', "is not JSON"),
        (b'{"a":1e999,"b":123456789012345678901234567890}', "is not JSON"),
        (b'\xef\xbb\xbf{"a":1}', "is not JSON"),
        (b'{"a":"\xff"}', 'is not JSON: \'{"a":"\\\\xff"}\''),
        (b"[" * 100_000, "is not JSON: '[[[["),
    ],
)
def test_what_is_no_object_is_quoted_with_its_line(line: bytes, what: str) -> None:
    framer = LineFramer()
    framer.feed(b'{"a":1}\n')

    with pytest.raises(Impurity) as caught:
        framer.feed(line + b"\n")

    assert str(caught.value).startswith("line 2 of the agent's stdout ")
    assert what in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_stream_that_ends_in_a_line_is_impure() -> None:
    framer = LineFramer()
    framer.feed(b'{"a":1}\n{"b"')

    with pytest.raises(Impurity, match="line 2 of the agent's stdout was cut before its end"):
        framer.end()


def test_a_stream_that_ends_with_a_line_is_pure() -> None:
    framer = LineFramer()
    framer.feed(b'{"a":1}\n  ')

    framer.end()


def test_a_line_that_never_ends_is_given_up() -> None:
    framer = LineFramer(limit=10)
    framer.feed(b"12345")

    with pytest.raises(Impurity, match="line 1 of the agent's stdout never ends"):
        framer.feed(b"1234567")


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"\\ud800"}',
        '{"a":18446744073709551616}',
        '{"a":-9223372036854775809}',
        '{"a":1.0}',
        '{"a":12345678901234567890123.5}',
    ],
)
def test_values_are_read_exactly(text: str) -> None:
    assert repr(parse(text.encode())) == repr(json.loads(text))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_what_is_encoded_reads_back_on_one_line(value: object) -> None:
    line = encode({"v": value})

    assert line.count(b"\n") == 1
    assert parse(line) == {"v": value}


def test_a_lone_surrogate_can_be_sent() -> None:
    assert encode({"a": "\ud800"}) == b'{"a":"\\ud800"}\n'
