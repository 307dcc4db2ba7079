import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import (
    FINISH,
    HEADER,
    Json,
    asked,
    chunks,
    event,
    event_lists,
    hang,
    json_values,
    lines,
    persisted,
    row,
    rows,
    text,
    write_log,
)

from llm_replay import repack
from llm_replay.__main__ import main
from llm_replay.check import problems_of
from llm_replay.inventory import Inventory
from llm_replay.session_log import dump_session_log, read_session_log
from llm_replay.show import render, summary_of

Capture = pytest.CaptureFixture[str]

USAGE = {"type": "usage", "usage": {"inputTokens": 812, "outputTokens": 95}}


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def told(capsys: Capture, *argv: str, status: int = 0) -> str:
    assert main(argv) == status
    return capsys.readouterr().out


def call(name: str, *parts: str) -> list[Json]:
    return [
        {"type": "tool-call-delta", "index": 1, "id": "c", "name": name, "argumentsDelta": part}
        for part in parts
    ]


def write_override(directory: Path, document: object) -> None:
    (directory / "replay.override.json").write_text(json.dumps(document))


def test_show_tells_each_session_call_by_call(capsys: Capture, tmp_path: Path) -> None:
    failure = {"code": "SERVER", "message": "too busy"}
    thinking = {"type": "reasoning-delta", "index": 0, "text": "hm\n hm"}
    write_log(
        tmp_path / "session.jsonl",
        asked(),
        *rows(text("Let me "), text("look.\x1b[0m"), *call("bash", '{"command":', '"ls"}'), USAGE),
        row({"type": "finish", "reason": {"kind": "tool-calls"}}),
        asked(call=2, step=2),
        *rows({"type": "finish", "reason": {"kind": "error", "failure": failure}}, step=2),
        asked(call=3, step=2, purpose="compaction"),
        event("compaction/end"),
        asked(call=4, step=3),
        row(thinking, step=3),
        event("assistant/message"),
        asked(call=5, turn=2),
        row(text("cut"), turn=2),
        header={**HEADER, "lineage": "1", "tokens": 1},
    )
    write_log(tmp_path / "session.1.jsonl", header={"type": "session"})

    assert told(capsys, "show", ".") == (
        "session.jsonl\n"
        "  session s1, lineage 1, normalized, 16 events, 5 calls\n"
        "  call  turn/step  ended       chunks  tokens in/out      time  said\n"
        "     1  1/1        tool-calls       6         812/95            "
        'Let me look.\\x1b[0m  → bash {"comma…\n'
        "     2  1/2        error            1                           ! SERVER: too busy\n"
        "     3  1/2 (c)    hole             0                           "
        "! It has no finish chunk, and the n…\n"
        "     4  1/3        -                1                           (hm hm)\n"
        "     5  2/1        hang             1                           cut\n"
        "\n"
        "session.1.jsonl\n"
        "  session (without an id), 0 events, 0 calls\n"
    )


def test_show_tells_times_where_a_log_has_them(capsys: Capture, tmp_path: Path) -> None:
    noon = 1_764_590_400_000
    events = persisted([*rows(text("a"), FINISH), *rows(FINISH, step=2)], start=noon, gap=1500)
    events[2]["time"] = "later"
    header = {**HEADER, "createdAt": noon}
    path = tmp_path / "a.jsonl"
    path.write_bytes(dump_session_log(header, events, layout="plain", projected=False))
    out = told(capsys, "show", "a.jsonl")

    assert "session s1, 2025-12-01 12:00:00 UTC, 3 events, 2 calls" in out
    assert "     1  1/1        stop             2                    1.5 s  a\n" in out
    assert "     2  1/1" not in out


def test_show_for_programs_is_json(capsys: Capture, tmp_path: Path) -> None:
    block = {"type": "tool-call", "id": "c", "name": "read", "arguments": "{}"}
    write_log(
        tmp_path / "a.jsonl",
        *rows(
            text("ab"),
            {"type": "block-end", "index": 0, "block": {"type": "text", "text": "AB"}},
            *call("bash", "{"),
            {"type": "block-end", "index": 1, "block": block},
            {"type": "block-end", "index": 2, "block": None},
            USAGE,
            FINISH,
        ),
    )
    [session] = json.loads(told(capsys, "show", "--json", "a.jsonl"))

    assert session.pop("calls") == [
        {
            "call": 1,
            "turn": 1,
            "step": 1,
            "purpose": "turn",
            "kind": "chunks",
            "finish": "stop",
            "failure": None,
            "chunks": 7,
            "text": "AB",
            "reasoning": "",
            "toolCalls": [{"name": "read", "arguments": "{}"}],
            "usage": USAGE["usage"],
            "ms": None,
            "problem": None,
        }
    ]
    assert session == {
        "file": "a.jsonl",
        "id": "s1",
        "lineage": None,
        "createdAt": 5,
        "tokens": False,
        "events": 7,
    }


def test_show_shows_what_a_terminal_cannot(capsys: Capture, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", *rows(text("\ud83d\x00é"), FINISH))

    assert "\\ud83d\\x00é\n" in told(capsys, "show", "a.jsonl")


@pytest.mark.parametrize("command", ["show", "pack"])
def test_a_log_that_is_not_there_is_told(command: str, capsys: Capture) -> None:
    assert main([command, "no.jsonl"]) == 1
    assert capsys.readouterr().err == (
        "no.jsonl: there is no such file\n  hint: record the scenario\n"
    )


def test_a_directory_without_logs_is_told(capsys: Capture, tmp_path: Path) -> None:
    write_log(tmp_path / "session.1.jsonl")
    write_log(tmp_path / "session.expected.jsonl")
    write_log(tmp_path / "sessions.jsonl")

    assert told(capsys, "check", ".", status=1) == (
        ".: there is no session.jsonl in this directory\n"
        "  hint: name a log, or a directory with session.jsonl, session.1.jsonl, …\n"
    )


def test_a_gap_in_the_numbers_of_logs_is_told(capsys: Capture, tmp_path: Path) -> None:
    for name in ("session.jsonl", "session.2.jsonl", "session.10.jsonl"):
        write_log(tmp_path / name)

    assert "there is no session.1.jsonl in this" in told(capsys, "check", ".", status=1)


def test_check_is_content_with_what_can_be_replayed(capsys: Capture, tmp_path: Path) -> None:
    write_log(tmp_path / "session.jsonl", asked(), asked(call=2), *rows(FINISH))
    write_override(tmp_path, {"patches": [{"at": 0, "entry": {"kind": "hang"}}]})

    assert told(capsys, "check", ".") == ".: fine\n"
    write_override(tmp_path, [{"kind": "hang"}])
    assert told(capsys, "check", ".") == ".: fine\n"
    (tmp_path / "session.jsonl").unlink()
    assert told(capsys, "check", ".") == ".: fine\n"


def test_check_tells_every_line_that_cannot_be_read(capsys: Capture, tmp_path: Path) -> None:
    malformed: Json = {"type": "text-chunks", "data": None}
    bad = lines(malformed, {"type": []}, header={"type": "x"}) + '[1]\n\n{"a"\n'
    (tmp_path / "a.jsonl").write_text(bad)
    out = told(capsys, "check", "a.jsonl", status=1)

    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        "a.jsonl:1: the type of the header is 'x', not 'session'",
        "a.jsonl:2: a malformed text-chunks row: data must be an object",
        "a.jsonl:4:1: this line is not a JSON object",
        "a.jsonl:6:5: this is not JSON: unexpected end of data",
    ]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_check_tells_an_empty_log(content: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(content)

    assert told(capsys, "check", "a.jsonl", status=1).startswith("a.jsonl:1: this log is empty\n")


def test_check_tells_every_call_that_cannot_be_served(capsys: Capture, tmp_path: Path) -> None:
    write_log(
        tmp_path / "session.jsonl",
        asked(call=3),
        asked(call=2),
        asked(call=3),
        *rows(text("{{uuid:1}}"), FINISH),
        header={**HEADER, "tokens": 1},
    )
    out = told(capsys, "check", ".", status=1)

    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        "session.jsonl:2: the model call of turn 1, step 1 never finished",
        "session.jsonl:3: the model call of turn 1, step 1 never finished",
        "session.jsonl:5: '{{' begins no token that is served, in '{{uuid:1}}'",
        "session.jsonl:2: this llm/call says that it is call 3; it is 1",
    ]


def test_check_cuts_off_what_a_child_inherited(capsys: Capture, tmp_path: Path) -> None:
    write_log(tmp_path / "session.jsonl")
    theirs = row(text("unfinished"))
    header = {**HEADER, "seedLength": 1}
    write_log(tmp_path / "session.1.jsonl", theirs, asked(), row(FINISH), header=header)

    assert told(capsys, "check", ".") == ".: fine\n"


def test_check_tells_what_readers_take_differently(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines() + '\n{"type":"x","type":"y"}\n')

    assert told(capsys, "check", "a.jsonl", status=1) == (
        "a.jsonl:3: the key 'type' stands twice in one object\n"
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
    document: object, problem: str, capsys: Capture, tmp_path: Path
) -> None:
    write_log(tmp_path / "session.jsonl", *rows(FINISH))
    write_override(tmp_path, document)

    assert problem in told(capsys, "check", ".", status=1)


def test_check_tells_an_override_without_the_log_that_it_patches(
    capsys: Capture, tmp_path: Path
) -> None:
    write_override(tmp_path, {"patches": []})

    assert told(capsys, "check", ".", status=1) == (
        "replay.override.json: there is no session.jsonl beside it to be patched\n"
    )


def test_check_tells_a_log_that_cannot_be_opened(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").mkdir()

    assert told(capsys, "check", ".", status=1) == (
        "session.jsonl: this file can't be read: Is a directory\n"
    )


@given(st.binary() | st.binary().map(lambda data: lines().encode() + data))
def test_random_bytes_are_fine_or_told_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.jsonl"
    path.write_bytes(data)

    for problem in problems_of(Inventory([path])):
        assert problem.startswith(f"{path}:")


@given(event_lists(), json_values, st.floats(allow_nan=False, allow_infinity=False))
def test_any_log_can_be_shown(events: list[Json], odd: object, created_at: float) -> None:
    header = {**HEADER, "createdAt": created_at}
    odd_end = [row({"type": "usage", "usage": odd}), row({"type": "finish", "reason": odd})]
    odd_block = row({"type": "block-end", "index": odd, "block": {"text": odd, "type": odd}})
    records = [*events, odd_block, *odd_end]
    written = dump_session_log(header, records, layout="plain", projected=False)
    summary = summary_of(read_session_log(written), primary=False)

    shown = render(summary, width=80).split("\n")
    assert all(len(line) <= 80 and line.isprintable() for line in shown)


def packable(*, projected: bool) -> bytes:
    events = persisted(rows(text("a"), text("b"), text("c"), FINISH))
    return dump_session_log(HEADER, events, layout="plain", projected=projected)


@pytest.mark.parametrize("projected", [True, False])
def test_pack_rewrites_in_canonical_layout_and_back(
    capsys: Capture, tmp_path: Path, *, projected: bool
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(packable(projected=projected))
    path.chmod(0o640)
    before = path.read_bytes()

    assert "is not in canonical layout\n  hint: llm-replay pack session.jsonl\n" in told(
        capsys, "pack", "--check", ".", status=1
    )
    assert path.read_bytes() == before
    told(capsys, "pack", ".")
    packed = path.read_bytes()
    assert (packed.count(b"\n"), b"seq0" in packed) == (3, not projected)
    assert told(capsys, "pack", "--check", ".") == "session.jsonl: is in canonical layout\n"
    assert told(capsys, "pack", "--layout", "plain", ".") == (
        f"session.jsonl: {len(packed)} bytes, now {len(before)}\n"
    )
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_pack_refuses_what_rewriting_would_lose(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines() + '\n{"type":"x","n":18446744073709551616}\n')

    assert main(["pack", "a.jsonl"]) == 1
    assert capsys.readouterr().err == (
        "a.jsonl:3: the integer 18446744073709551616 does not fit into 64 bits\n"
        "  hint: repair the line by hand\n"
    )


def test_pack_refuses_a_log_that_is_half_projected(capsys: Capture, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", {**event("x"), "seq": 0, "time": 1}, event("y"))

    assert main(["pack", "a.jsonl"]) == 1
    assert capsys.readouterr().err == (
        "a.jsonl: some records have a seq and a time, and others have none\n"
        "  hint: remove the keys seq, time, seq0 and time0 from all of them\n"
    )


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(packable(projected=True))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        repack.replace_file(path, b"new")
    assert path.read_bytes() == packable(projected=True)
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_tells_how_it_is_used(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "llm-replay show scenarios/fix-typo" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main([])


def run_module(*argv: str, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  our own interpreter
        [sys.executable, "-m", "llm_replay", *argv], stdout=stdout, stderr=subprocess.PIPE
    )


def test_the_module_is_the_command(tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl")
    child = run_module("check", "a.jsonl", stdout=subprocess.PIPE)

    assert child.communicate() == (b"a.jsonl: fine\n", b"")
    assert child.returncode == 0


def test_a_reader_that_has_seen_enough_is_no_failure_of_ours(tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl")
    reading, writing = os.pipe()
    os.close(reading)
    child = run_module("show", "a.jsonl", stdout=writing)
    os.close(writing)

    assert child.communicate()[1] == b""
    assert child.returncode == 1
