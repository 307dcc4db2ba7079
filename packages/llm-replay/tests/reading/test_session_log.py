import io
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import HEADER, Json, event, event_lists, lines, persisted, rows, text

from llm_replay.exceptions import SessionLogError
from llm_replay.session_log import (
    SessionHeader,
    dump_session_log,
    lineage_key,
    open_log,
    parse_session_header,
    parse_session_log,
    read_session_log,
    sort_logs,
)

Layout = Literal["plain", "packed"]


def complaint(data: bytes | str) -> str:
    with pytest.raises(SessionLogError) as caught:
        read_session_log(data, name="a.jsonl")
    return str(caught.value)


def header(**keys: object) -> SessionHeader:
    return parse_session_header(json.dumps({"type": "session", **keys}))


def test_a_log_is_its_header_and_its_events_with_their_lines() -> None:
    packed = {
        "type": "text-chunks",
        "data": {"turn": 1, "step": 1, "index": 0, "dt": [7], "texts": ["a", "b"]},
    }
    log = read_session_log(lines(event("turn/start"), packed, event("turn/end")), name="a.jsonl")

    assert (log.name, log.header.id, log.header.raw) == ("a.jsonl", "s1", HEADER)
    assert [found["type"] for found in log.events] == [
        "turn/start",
        "assistant/chunk",
        "assistant/chunk",
        "turn/end",
    ]
    assert log.lines == [2, 3, 3, 4]


def test_what_a_projected_log_leaves_out_is_filled_in() -> None:
    packed = {
        "type": "text-chunks",
        "data": {"turn": 1, "step": 1, "index": 0, "dt": [7], "texts": ["a", "b"]},
    }
    events = parse_session_log(lines(event("x"), packed, event("y")))

    assert [(found["seq"], found["time"]) for found in events] == [(0, 0), (1, 0), (2, 7), (3, 0)]


def test_what_is_there_stays_even_where_it_makes_no_sense() -> None:
    records = [{**event("x"), "seq": None, "time": -1}, {**event("y"), "seq": 9}, event("z")]
    events = parse_session_log(lines(*records))

    assert [(found["seq"], found["time"]) for found in events] == [(None, -1), (9, 0), (2, 0)]


def test_an_event_is_any_object() -> None:
    assert parse_session_log(lines({"type": ["text-chunks"]}, {})) == [
        {"type": ["text-chunks"], "seq": 0, "time": 0},
        {"seq": 1, "time": 0},
    ]


def test_a_malformed_packed_row_is_told_with_its_line() -> None:
    assert complaint(lines({"type": "text-chunks", "data": None})) == (
        "a.jsonl:2:23: a malformed text-chunks row: data must be an object"
    )


def test_an_empty_log_is_refused() -> None:
    assert complaint(" \n\n") == (
        "a.jsonl:1:1: this log is empty\n"
        "  Even a session without any event has a header.\n"
        "  hint: record the scenario, or write the header by hand"
    )


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"type": "sessions"}, "the type of the header is 'sessions', not 'session'"),
        ({"version": 2}, "the header has version 2; known are 0 and 1"),
        ({"version": True}, "the header has version True; known are 0 and 1"),
        ({"version": "0"}, "the header has version '0'; known are 0 and 1"),
        ({"tokens": 2}, "the header has tokens 2; known is 1"),
        ({"tokens": False}, "the header has tokens False; known is 1"),
        ({"lineage": "0"}, "the header has lineage '0', which is not one such as '1' or '1/2.1.3'"),
        ({"lineage": 1}, "the header has lineage 1, which is not one such as '1' or '1/2.1.3'"),
    ],
)  # fmt: skip
def test_a_header_that_is_not_ours_to_read_is_refused(keys: Json, told: str) -> None:
    text = lines(header={**HEADER, **keys})
    column = text.index(f'"{next(iter(keys))}"') + 1

    assert complaint(text) == (
        f"a.jsonl:1:{column}: {told}\n"
        "  The first record of a log is its header.\n"
        "  hint: name a session log here, written by a version that this one knows"
    )


def test_a_header_says_all_it_can() -> None:
    raw = {
        "type": "session",
        "version": 1,
        "id": "s",
        "createdAt": 7,
        "cwd": "/w",
        "parentSession": "p",
        "seedLength": 3,
        "lineage": "1/2.1.3",
        "tokens": 1,
    }

    assert parse_session_header(json.dumps(raw)) == SessionHeader(
        id="s",
        created_at=7,
        cwd="/w",
        parent_session="p",
        seed_length=3,
        lineage="1/2.1.3",
        version=1,
        tokens=True,
        raw=raw,
    )


@pytest.mark.parametrize("keys", [{}, {"id": 1, "createdAt": "2", "cwd": [], "seedLength": True}])
def test_a_header_is_lenient_in_what_only_labels(keys: Json) -> None:
    found = header(**keys)

    assert (found.id, found.created_at, found.cwd, found.parent_session) == ("", 0, None, None)
    assert (found.seed_length, found.lineage, found.version, found.tokens) == (0, None, 0, False)


def test_the_header_can_be_read_without_the_rest() -> None:
    assert parse_session_header(lines("no object")).id == "s1"


def test_lineages_sort_by_their_numbers_and_parents_before_children() -> None:
    order = ["1", "1/1.1.2", "1/1.1.2/1.1.1", "1/1.1.2.2", "1/1.1.10", "1/2.1.1", "2", "10"]

    by_text = sorted(order)

    assert sorted(by_text, key=lineage_key) == order


@pytest.mark.parametrize(
    "bad", ["", "0", "01", "1/", "1/1.1", "1/1.1.0", "1/1.1.1.1.1", "a", "\uff11"]
)
def test_what_is_no_lineage_has_no_place(bad: str) -> None:
    with pytest.raises(ValueError, match=r"is not a lineage such as '1' or '1/2\.1\.3'"):
        lineage_key(bad)


def test_logs_stand_in_order_of_lineage_those_without_after_them() -> None:
    headers = [
        header(id="e", createdAt=1, parentSession="a"),
        header(id="d", createdAt=2),
        header(id="b", createdAt=1),
        header(id="a", createdAt=1),
        header(lineage="1/1.1.10"),
        header(lineage="1/1.1.2"),
        header(lineage="1"),
    ]

    assert sort_logs(headers) == [6, 5, 4, 3, 2, 1, 0]


def test_the_layouts_and_forms_of_a_log_are_all_the_same_log() -> None:
    events = persisted(rows(text("a"), text("b"), text("c")))
    plain = dump_session_log(HEADER, events, layout="plain", projected=False)
    packed = dump_session_log(HEADER, events, layout="packed", projected=True)

    assert plain.count(b"\n") == 4
    assert packed == (
        b'{"type":"session","version":1,"id":"s1","createdAt":5}\n'
        b'{"type":"text-chunks","data":{"turn":1,"step":1,"index":0,"dt":[10,10],'
        b'"texts":["a","b","c"]}}\n'
    )
    assert read_session_log(plain).events == events
    assert [found["data"] for found in read_session_log(packed).events] == [
        found["data"] for found in events
    ]


@given(event_lists(), st.sampled_from(["plain", "packed"]))
def test_a_persisted_log_survives_writing_and_reading(events: list[Json], layout: Layout) -> None:
    written = dump_session_log(HEADER, events, layout=layout, projected=False)

    assert read_session_log(written).events == events
    assert read_session_log(written.replace(b"\n", b"\r\n\n")).events == events
    assert read_session_log(written.decode()).events == events


@given(event_lists(leaps=False), st.sampled_from(["plain", "packed"]))
def test_a_projected_log_survives_reading_and_writing(events: list[Json], layout: Layout) -> None:
    written = dump_session_log(HEADER, events, layout=layout, projected=True)
    again = read_session_log(written)

    assert [found["data"] for found in again.events] == [found["data"] for found in events]
    rewritten = dump_session_log(again.header.raw, again.events, layout="plain", projected=True)
    assert rewritten == dump_session_log(HEADER, events, layout="plain", projected=True)


@given(st.data(), event_lists())
def test_a_log_cut_anywhere_reads_up_to_there_or_is_refused(
    data: st.DataObject, events: list[Json]
) -> None:
    written = dump_session_log(HEADER, events, layout="plain", projected=False)
    cut = data.draw(st.integers(0, len(written)))
    try:
        found = read_session_log(written[:cut]).events
    except SessionLogError as error:
        assert error.line  # noqa: PT017  which of the two it is does not matter
    else:
        assert found == events[: len(found)]


class Trickle(io.RawIOBase):
    """A file that gives its content in pieces of the sizes it was told."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._rest = io.BytesIO(data)
        self._sizes = sizes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  any writable buffer
        size = min(len(buffer), self._sizes.pop() if self._sizes else len(buffer))
        piece = self._rest.read(size)
        buffer[: len(piece)] = piece
        return len(piece)


@given(event_lists(), st.lists(st.integers(1, 40), max_size=50))
def test_how_a_log_is_cut_into_reads_does_not_matter(events: list[Json], sizes: list[int]) -> None:
    written = dump_session_log(HEADER, events, layout="plain", projected=False)
    header, records = open_log(io.BufferedReader(Trickle(written, sizes)), "a.jsonl")

    assert header.raw == HEADER
    assert [record for _, record in records] == events


@given(st.binary())
def test_random_bytes_are_a_log_or_an_error_of_ours(data: bytes) -> None:
    for text_of_log in (data, lines().encode() + data):
        try:
            read_session_log(text_of_log)
        except SessionLogError as error:
            assert str(error).startswith("session snapshot:")  # noqa: PT017  see the name


def test_a_log_of_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines() + "[]\n")

    with pytest.raises(SessionLogError, match=r"a\.jsonl:2:1: this line is not a JSON object"):
        read_session_log(path.read_bytes(), name=str(path))
