import os
from pathlib import Path

import pytest
from log_kit import (
    FINISH,
    HEADER,
    Told,
    event,
    lines,
    persisted,
    rows,
    text,
    write_log,
)

from llm_replay import repack
from llm_replay.exceptions import ScriptError
from llm_replay.session_log import dump_session_log


def packable(*, projected: bool) -> bytes:
    events = persisted(rows(text("a"), text("b"), text("c"), FINISH))
    return dump_session_log(HEADER, events, layout="plain", projected=projected)


@pytest.mark.parametrize("projected", [True, False])
def test_pack_rewrites_in_canonical_layout_and_back(
    told: Told, tmp_path: Path, *, projected: bool
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(packable(projected=projected))
    path.chmod(0o640)
    before = path.read_bytes()

    assert "is not in canonical layout\n  hint: llm-replay pack session.jsonl\n" in told(
        "pack", "--check", ".", status=1
    )
    assert path.read_bytes() == before
    told("pack", ".")
    packed = path.read_bytes()
    assert (packed.count(b"\n"), b"seq0" in packed) == (3, not projected)
    assert told("pack", "--check", ".") == "session.jsonl: is in canonical layout\n"
    assert told("pack", "--layout", "plain", ".") == (
        f"session.jsonl: {len(packed)} bytes, now {len(before)}\n"
    )
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_pack_refuses_what_rewriting_would_lose(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines() + '\n{"type":"x","n":18446744073709551616}\n')

    assert told("pack", "a.jsonl", status=1) == (
        "a.jsonl:3:17: the integer 18446744073709551616 does not fit into 64 bits\n"
        "  hint: repair the line by hand\n"
    )


def test_pack_refuses_a_log_that_is_half_projected(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", {**event("x"), "seq": 0, "time": 1}, event("y"))

    assert told("pack", "a.jsonl", status=1) == (
        "a.jsonl: some records have a seq and a time, and others have none\n"
        "  hint: remove the keys seq, time, seq0 and time0 from all of them\n"
    )


def test_pack_goes_on_after_a_file_that_it_cannot_read(told: Told, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(f"{lines()}{{oops\n")
    (tmp_path / "dir").mkdir()
    good = tmp_path / "good.jsonl"
    good.write_bytes(packable(projected=True))
    size = good.stat().st_size
    out = told("pack", "bad.jsonl", "gone.jsonl", "dir", "good.jsonl", status=1)

    assert out == (
        f"good.jsonl: {size} bytes, now {good.stat().st_size}\n"
        "bad.jsonl:2:2: this is not JSON: unexpected character, expected a string key\n"
        "gone.jsonl: there is no such file\n"
        "  hint: record the scenario\n"
        "dir: there is no session.jsonl in this directory\n"
        "  hint: name a log, or a directory with session.jsonl, session.1.jsonl, …\n"
    )


def test_pack_replaces_what_a_link_leads_to_and_leaves_the_link(told: Told, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    log = tmp_path / "elsewhere" / "log.jsonl"
    log.write_bytes(packable(projected=True))
    before = log.stat().st_ino
    link = tmp_path / "session.jsonl"
    link.symlink_to("elsewhere/log.jsonl")
    told("pack", ".")

    assert str(link.readlink()) == "elsewhere/log.jsonl"
    assert b"text-chunks" in log.read_bytes()
    assert log.stat().st_ino != before
    assert list(log.parent.iterdir()) == [log]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(packable(projected=True))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ScriptError) as caught:
        repack.replace_file(path, b"new")
    assert str(caught.value) == (
        f"{path}: this file can't be rewritten: No space left on device\n"
        "  It is as it was.\n  hint: see to the permissions or the disk, and pack it again"
    )
    assert path.read_bytes() == packable(projected=True)
    assert list(tmp_path.iterdir()) == [path]
