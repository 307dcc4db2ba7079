import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from replay_kit import schema_problems

from llm_replay.exceptions import ConfigError, VerdictError
from llm_replay.verdict import (
    VERDICT_SCHEMA,
    VerdictFile,
    VerdictWriter,
    read_verdict,
    written_by_others,
)


def write_everything(directory: Path | None) -> None:
    writer = VerdictWriter(directory)
    writer.installed([("session.jsonl", 3), ("session.1.jsonl", 0)])
    writer.bound(0, "live", None)
    writer.bound(1, None, "1/1.1.1")
    writer.call(0, 1)
    writer.served(0, 1)
    writer.call(0, 2)
    writer.hanging(0, 2)
    writer.fault("unknown-session", "who is this?")
    writer.fault("exhausted", "no \ud800 left", script=0, call=4)


def test_each_fact_is_a_line_as_the_contract_spells_it(verdict_dir: Path) -> None:
    write_everything(verdict_dir)

    [path] = verdict_dir.iterdir()
    assert re.fullmatch(rf"{os.getpid()}-[0-9a-f]{{16}}\.jsonl", path.name)
    assert path.read_text("ascii").splitlines() == [
        (
            '{"fact":"installed","version":1,"scripts":'
            '[{"file":"session.jsonl","calls":3},{"file":"session.1.jsonl","calls":0}]}'
        ),
        '{"fact":"bound","script":0,"session":"live"}',
        '{"fact":"bound","script":1,"session":null,"lineage":"1/1.1.1"}',
        '{"fact":"call","script":0,"call":1}',
        '{"fact":"served","script":0,"call":1}',
        '{"fact":"call","script":0,"call":2}',
        '{"fact":"hanging","script":0,"call":2}',
        '{"fact":"fault","kind":"unknown-session","message":"who is this?"}',
        '{"fact":"fault","kind":"exhausted","script":0,"call":4,"message":"no \\ud800 left"}',
    ]


def test_every_fact_is_valid_by_the_published_schema(verdict_dir: Path) -> None:
    schema = json.loads(VERDICT_SCHEMA.read_bytes())
    write_everything(verdict_dir)

    [file] = read_verdict(verdict_dir)
    assert [schema_problems(schema, fact) for fact in file.facts] == [[]] * 9


@pytest.mark.parametrize(
    "fact",
    [
        {"fact": "call", "script": 0, "call": 0},
        {"fact": "call", "script": 0},
        {"fact": "served", "script": -1, "call": 1},
        {"fact": "fault", "kind": "bored", "message": ""},
        {"fact": "bound", "script": 0},
        {"fact": "installed", "version": 2, "scripts": []},
        {"fact": "installed", "version": 1, "scripts": [{"file": "a/b", "calls": 1}]},
        {"fact": "noise"},
        {"fact": "hanging", "script": 0, "call": 1, "more": 1},
    ],
    ids=str,
)
def test_what_the_contract_does_not_say_is_not_valid(fact: dict[str, Any]) -> None:
    assert schema_problems(json.loads(VERDICT_SCHEMA.read_bytes()), fact) != []


def test_without_a_directory_nothing_is_written(verdict_dir: Path) -> None:
    write_everything(None)

    assert list(verdict_dir.iterdir()) == []


def test_each_fact_is_there_as_soon_as_it_is_told(verdict_dir: Path) -> None:
    writer = VerdictWriter(verdict_dir)
    counts = []
    for number in range(1, 4):
        writer.call(0, number)
        counts.append(len(read_verdict(verdict_dir)[0].facts))

    assert counts == [1, 2, 3]


def test_each_fact_is_one_write(verdict_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda _file, data: written.append(data))

    write_everything(verdict_dir)
    assert [(data.count(b"\n"), data[-1:]) for data in written] == [(1, b"\n")] * 9


def test_a_directory_that_can_not_be_written_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        VerdictWriter(tmp_path / "gone")

    assert str(caught.value) == (
        f"{tmp_path}/gone: 1 problem\n"
        "  DSH_SNAPSHOT_VERDICT_DIR: can't be written: No such file or directory\n"
        "  hint: make the directory first, or set no DSH_SNAPSHOT_VERDICT_DIR"
    )


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_the_file_is_closed_when_nobody_can_tell_anything_any_more(verdict_dir: Path) -> None:
    before = open_files()
    writer = VerdictWriter(verdict_dir)
    during = open_files()
    del writer

    assert (during, open_files()) == (before + 1, before)


@pytest.mark.parametrize("cut", range(1, 37))
def test_a_last_line_without_its_line_feed_is_no_fact(verdict_dir: Path, cut: int) -> None:
    whole = b'{"fact":"call","script":0,"call":12}\n'
    (verdict_dir / "1-a.jsonl").write_bytes(whole * 2 + whole[:cut])

    [file] = read_verdict(verdict_dir)
    assert file.facts == [{"fact": "call", "script": 0, "call": 12}] * 2


def test_files_are_read_in_order_and_others_are_left_alone(verdict_dir: Path) -> None:
    for name in ("7-b.jsonl", "7-a.jsonl", "0.claim", "7-c.tmp"):
        (verdict_dir / name).touch()

    assert [file.name for file in read_verdict(verdict_dir)] == ["7-a.jsonl", "7-b.jsonl"]


def test_what_others_wrote_is_all_but_the_files_of_this_process(verdict_dir: Path) -> None:
    VerdictWriter(verdict_dir).call(0, 1)
    (verdict_dir / "1-other.jsonl").write_text('{"fact":"call","script":1,"call":2}\n')

    assert written_by_others(verdict_dir) == [
        VerdictFile("1-other.jsonl", [{"fact": "call", "script": 1, "call": 2}])
    ]


def test_a_directory_that_is_not_there_has_no_verdict(tmp_path: Path) -> None:
    assert read_verdict(tmp_path / "gone") == []


@pytest.mark.parametrize("line", [b"noise", b"[1]", b'{"kind":"call"}', b"\xff", b""], ids=repr)
def test_a_whole_line_that_is_no_fact_is_refused_with_its_place(
    verdict_dir: Path, line: bytes
) -> None:
    path = verdict_dir / "1-a.jsonl"
    path.write_bytes(b'{"fact":"call","script":0,"call":1}\n' + line + b"\n")

    with pytest.raises(VerdictError) as caught:
        read_verdict(verdict_dir)
    assert str(caught.value) == (
        f"{path}:2: this line of the verdict is no fact\n"
        '  Each whole line is a JSON object with "fact" in it, written at once.\n'
        "  hint: compare what wrote it with verdict.schema.json of llm_replay"
    )
