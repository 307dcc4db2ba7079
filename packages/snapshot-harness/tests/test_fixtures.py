import json
from pathlib import Path
from typing import Literal

import pytest
from guarded import write_scenario
from hypothesis import given
from hypothesis import strategies as st
from judging import ROOTS, RULES, RUN, answer, dump, event, log, run

from llm_replay.session_log import read_session_log
from snapshot_harness.exceptions import FixtureError
from snapshot_harness.fixtures import (
    OVERRIDE,
    SESSION,
    TRANSCRIPT,
    find_logs,
    log_bytes,
    log_name,
    read_fixture,
    read_overrides,
    stable_lines,
    transcript_bytes,
)
from snapshot_harness.normalize import normalize_fixture

ENTRY = {"kind": "hang"}


def test_a_scenario_is_read_whole(tmp_path: Path) -> None:
    write_scenario(tmp_path)

    fixture = read_fixture(tmp_path)

    assert [one.name for one in fixture.logs] == [SESSION]
    assert len(fixture.transcript) == 3
    assert (fixture.overridden, fixture.foreign) == ({}, [])


def test_refresh_reads_it_without_its_transcript(tmp_path: Path) -> None:
    write_scenario(tmp_path)
    (tmp_path / TRANSCRIPT).unlink()

    assert read_fixture(tmp_path, transcript=False).transcript == []


def test_all_files_that_are_missing_or_broken_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "session.1.jsonl").write_text("{\n")
    (tmp_path / ".commit").write_text("{}")

    with pytest.raises(FixtureError) as caught:
        read_fixture(tmp_path, overridden=True)

    names = [problem.path.name for problem in caught.value.problems]
    assert names == [".commit", SESSION, "session.1.jsonl", TRANSCRIPT, OVERRIDE]
    assert all(problem.hint for problem in caught.value.problems)


def test_an_unreadable_line_is_told_with_line_and_column(tmp_path: Path) -> None:
    write_scenario(tmp_path)
    (tmp_path / TRANSCRIPT).write_text('{}\n\n{"a":}\n')

    with pytest.raises(FixtureError) as caught:
        read_fixture(tmp_path)

    (problem,) = caught.value.problems
    assert problem.line == 3
    assert problem.what.startswith("column 6: ")


@pytest.mark.parametrize(
    ("document", "calls"),
    [
        ([ENTRY], {0: {1, 2, 3, 99}}),
        ({"patches": [{"at": 0, "entry": ENTRY}, {"at": 2, "entry": ENTRY}]}, {0: {1, 3}}),
        ({"sessions": {"0": {"patches": []}}}, {0: set()}),
    ],
)
def test_overridden_calls_are_numbered_from_one(
    tmp_path: Path, document: object, calls: dict[int, set[int]]
) -> None:
    write_scenario(tmp_path)
    (tmp_path / OVERRIDE).write_text(json.dumps(document))

    found = read_fixture(tmp_path, overridden=True).overridden

    assert set(found) == set(calls)
    for place, numbers in calls.items():
        assert {number for number in (1, 2, 3, 99) if number in found[place]} == numbers


def test_an_override_that_says_something_impossible_is_told(tmp_path: Path) -> None:
    (tmp_path / OVERRIDE).write_text("{")

    with pytest.raises(FixtureError, match=OVERRIDE):
        read_overrides(tmp_path, 0)


def test_the_directories_of_literal_logs_are_told(tmp_path: Path) -> None:
    write_scenario(tmp_path)
    (tmp_path / SESSION).write_bytes(
        dump({"type": "session", "version": 0, "id": "a", "cwd": "/rec/plain"})
    )

    assert read_fixture(tmp_path).foreign == ["/rec/plain"]


def test_logs_stand_in_order_of_their_numbers(tmp_path: Path) -> None:
    names = ["session.10.jsonl", "session.2.jsonl", "session.jsonl", "session.1.jsonl"]
    for name in [*names, "session.01.jsonl", "session.x.jsonl", "session.jsonl.new"]:
        (tmp_path / name).write_text("")

    assert [path.name for path in find_logs(tmp_path)] == [
        log_name(number) for number in (0, 1, 2, 10)
    ]


@pytest.mark.parametrize("layout", ["plain", "packed"])
def test_a_written_log_is_projected_compact_and_read_again(
    layout: Literal["plain", "packed"],
) -> None:
    done = run([log([event("x", {"seq": 1, "é": "\ud83d"}), *answer("a", "b", "c", "d")])])

    data = log_bytes(done.logs[0], layout=layout)

    rows = [json.loads(line) for line in data.split(b"\n")[1:-1]]
    assert not any({"seq", "time", "seq0", "time0"} & row.keys() for row in rows)
    assert [row["type"] for row in rows].count("text-chunks") == (layout == "packed")
    again = normalize_fixture([read_session_log(data)], [], rules=RULES)
    assert again.logs[0].events == done.logs[0].events
    assert b'"\xc3\xa9":"\\ud83d"' in data


def test_an_event_without_type_is_written_as_it_is() -> None:
    done = run([log([{"type": 1, "data": RUN}])])
    done.logs[0].events[0].pop("type")

    assert log_bytes(done.logs[0], layout="plain").endswith(b'\n{"data":"{{run}}"}\n')
    assert ROOTS.run == RUN


def test_a_transcript_is_one_compact_line_per_frame() -> None:
    assert transcript_bytes([{"a": [1]}, {"b": 1.0}]) == b'{"a":[1]}\n{"b":1.0}\n'
    assert transcript_bytes([]) == b""


def test_lines_that_are_equal_by_value_keep_their_spelling() -> None:
    old = b'{"b":1,"a":2}\n{"c":1}\nbroken\n'
    new = b'{"c":1}\n{"a":2,"b":1}\n{"a":2,"b":1.0}\n'

    assert stable_lines(new, old) == b'{"c":1}\n{"b":1,"a":2}\n{"a":2,"b":1.0}\n'
    assert stable_lines(new, None) == new
    assert stable_lines(new, new) == new


@given(
    value=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=4),
    data=st.data(),
)
def test_another_order_of_keys_changes_no_byte(
    value: dict[str, object], data: st.DataObject
) -> None:
    keys = data.draw(st.permutations(sorted(value)))
    old, new = dump(value), dump({key: value[key] for key in keys})

    assert stable_lines(new, old) == old
