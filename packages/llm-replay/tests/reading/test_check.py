import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import (
    FINISH,
    HEADER,
    Json,
    Told,
    asked,
    chunks,
    hang,
    lines,
    row,
    rows,
    text,
    write_log,
)

from llm_replay.check import problems_of
from llm_replay.inventory import Inventory, inventory_of


def write_override(directory: Path, document: object) -> None:
    (directory / "replay.override.json").write_text(json.dumps(document))


def test_a_directory_without_logs_is_told(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "session.1.jsonl")
    write_log(tmp_path / "session.expected.jsonl")
    write_log(tmp_path / "sessions.jsonl")

    assert told("check", ".", status=1) == (
        ".: there is no session.jsonl in this directory\n"
        "  hint: name a log, or a directory with session.jsonl, session.1.jsonl, …\n"
    )


def test_a_gap_in_the_numbers_of_logs_is_told(told: Told, tmp_path: Path) -> None:
    for name in ("session.jsonl", "session.2.jsonl", "session.10.jsonl"):
        write_log(tmp_path / name)

    assert "there is no session.1.jsonl in this" in told("check", ".", status=1)


def test_only_numbers_as_they_are_written_name_a_log(tmp_path: Path) -> None:
    for name in ("session.jsonl", "session.01.jsonl", "session.\u0662.jsonl", "session.0.jsonl"):
        write_log(tmp_path / name)

    assert [path.name for path in inventory_of(tmp_path).logs] == ["session.jsonl"]


def test_check_is_content_with_what_can_be_replayed(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "session.jsonl", asked(), asked(call=2), *rows(FINISH))
    write_override(tmp_path, {"patches": [{"at": 0, "entry": {"kind": "hang"}}]})

    assert told("check", ".") == ".: fine\n"
    write_override(tmp_path, [{"kind": "hang"}])
    assert told("check", ".") == ".: fine\n"
    (tmp_path / "session.jsonl").unlink()
    assert told("check", ".") == ".: fine\n"


def test_check_tells_every_line_that_cannot_be_read(told: Told, tmp_path: Path) -> None:
    malformed: Json = {"type": "text-chunks", "data": None}
    bad = lines(malformed, {"type": []}, header={"type": "x"}) + '[1]\n\n{"a"\n'
    (tmp_path / "a.jsonl").write_text(bad)
    out = told("check", "a.jsonl", status=1)

    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        "a.jsonl:1:2: the type of the header is 'x', not 'session'",
        "a.jsonl:2:23: a malformed text-chunks row: data must be an object",
        "a.jsonl:4:1: this line is not a JSON object",
        "a.jsonl:6:5: this is not JSON: unexpected end of data",
    ]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_check_tells_an_empty_log(content: str, told: Told, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(content)

    assert told("check", "a.jsonl", status=1).startswith("a.jsonl:1:1: this log is empty\n")


def test_check_tells_every_call_that_cannot_be_served(told: Told, tmp_path: Path) -> None:
    write_log(
        tmp_path / "session.jsonl",
        asked(call=3),
        asked(call=2),
        asked(call=3),
        *rows(text("{{uuid:1}}"), FINISH),
        header={**HEADER, "tokens": 1},
    )
    out = told("check", ".", status=1)

    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        "session.jsonl:2: the model call of turn 1, step 1 never finished",
        "session.jsonl:3: the model call of turn 1, step 1 never finished",
        "session.jsonl:5: '{{' begins no token that is served, in '{{uuid:1}}'",
        "session.jsonl:2: this llm/call says that it is call 3; it is 1",
    ]


def test_check_tells_an_announcement_that_says_nothing(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", {"type": "llm/call"}, {"type": "llm/call", "data": []})
    out = told("check", "a.jsonl", status=1)

    assert "a.jsonl:2: this llm/call says that it is call None; it is 1\n" in out
    assert "a.jsonl:3: this llm/call says that it is call None; it is 2\n" in out


def test_check_cuts_off_what_a_child_inherited(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "session.jsonl")
    theirs = row(text("unfinished"))
    header = {**HEADER, "seedLength": 1}
    write_log(tmp_path / "session.1.jsonl", theirs, asked(), row(FINISH), header=header)

    assert told("check", ".") == ".: fine\n"


def test_check_tells_what_readers_take_differently(told: Told, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines() + '\n{"type":"x","type":"y"}\n')

    assert told("check", "a.jsonl", status=1) == (
        "a.jsonl:3:13: the key 'type' stands twice in one object\n"
    )


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "replay.override.json: 1 problem\n  must be a list of entries"),
        ({"sessions": {"1": []}}, "  session 1: there is no such file; the last one is 0\n"),
        ({"patches": [{"at": 2, "entry": hang()}]}, "  patch at 2: the script has 1 call"),
        ({"patches": []}, "override.json: it says only what the log derives to\n  hint: remove"),
        ([chunks(FINISH)], "override.json: it says only what the log derives to\n  hint: remove"),
    ],
)  # fmt: skip
def test_check_tells_what_is_wrong_with_an_override(
    document: object, problem: str, told: Told, tmp_path: Path
) -> None:
    write_log(tmp_path / "session.jsonl", *rows(FINISH))
    write_override(tmp_path, document)

    assert problem in told("check", ".", status=1)


def test_check_names_the_session_whose_override_is_wrong(told: Told, tmp_path: Path) -> None:
    for name in ("session.jsonl", "session.1.jsonl", "session.2.jsonl"):
        write_log(tmp_path / name, *rows(FINISH))
    patches = [{"at": 2, "entry": hang()}]
    write_override(tmp_path, {"sessions": {"1": {"patches": patches}, "2": [chunks(FINISH)]}})

    assert told("check", ".", status=1) == (
        "replay.override.json: 1 problem\n"
        "  session 1, patch at 2: the script has 1 call; 1 appends, more is past the end\n"
        "  hint: see `llm-replay show` for the calls of a log\n"
        "replay.override.json: session 2: it says only what the log derives to\n"
        "  hint: remove it\n"
    )


def test_check_tells_a_key_that_stands_twice_in_an_override(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "session.jsonl", asked())
    (tmp_path / "replay.override.json").write_text(
        '{"patches":[],"patches":[{"at":1,"entry":{"kind":"hang"}}]}'
    )

    assert told("check", ".", status=1) == (
        "replay.override.json:1:15: the key 'patches' stands twice in one object\n"
    )


def test_check_tells_an_override_without_the_log_that_it_patches(
    told: Told, tmp_path: Path
) -> None:
    write_override(tmp_path, {"patches": []})

    assert told("check", ".", status=1) == (
        "replay.override.json: there is no session.jsonl beside it to be patched\n"
    )


def test_check_tells_a_log_that_cannot_be_opened(told: Told, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").mkdir()

    assert told("check", ".", status=1) == (
        "session.jsonl: this file can't be read: Is a directory\n"
    )


def test_check_tells_an_override_that_cannot_be_opened(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "session.jsonl")
    (tmp_path / "replay.override.json").mkdir()

    assert told("check", ".", status=1) == (
        "replay.override.json: 1 problem\n"
        "  this file can't be read: Is a directory\n"
        "  hint: name a file that is there, or none\n"
    )


@given(st.binary() | st.binary().map(lambda data: lines().encode() + data))
def test_random_bytes_are_fine_or_told_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.jsonl"
    path.write_bytes(data)

    for problem in problems_of(Inventory([path])):
        assert problem.startswith(f"{path}:")
