import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from snapshot_harness.exceptions import AgentError
from snapshot_harness.harvest import harvest
from snapshot_harness.tail import LogTails, zstd

Line = dict[str, Any]


def header(session: str, **rest: Any) -> Line:  # noqa: ANN401
    return {"type": "session", "version": 1, "id": session, "createdAt": 5, **rest}


def event(seq: int, kind: str = "turn/start", **data: Any) -> Line:  # noqa: ANN401
    return {"type": kind, "seq": seq, "time": 1, "data": data}


def text(lines: Sequence[Line]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def write(root: Path, name: str, data: bytes) -> Path:
    path = root / "project" / name / "session.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_logs_come_in_order_of_lineage(tmp_path: Path) -> None:
    for name, lineage in (("a", "1/1.1.10"), ("b", "2"), ("c", "1/1.1.2"), ("d", "1")):
        write(tmp_path, name, text([header(name, lineage=lineage)]))

    assert [log.header.id for log in harvest(tmp_path)] == ["d", "c", "a", "b"]


def test_a_compressed_log_is_read_whatever_its_frames(tmp_path: Path) -> None:
    path = write(tmp_path, "a", b"").with_name("session.jsonl.zstd")
    path.with_name("session.jsonl").unlink()
    path.write_bytes(zstd().compress(text([header("a")])) + zstd().compress(text([event(0)])))

    (log,) = harvest(tmp_path)

    assert [one["type"] for one in log.events] == ["turn/start"]


@pytest.mark.parametrize(
    ("logs", "what"),
    [
        ({"a": text([header("a"), event(1)])}, "session.jsonl:2: seq is 1, expected 0"),
        (
            {"a": text([header("a"), {"type": "x", "seq": True, "time": 0, "data": {}}])},
            "seq is True, expected 0",
        ),
        ({"a": text([header("a")])[:-1]}, "the last line of the agent's log was cut"),
        ({"a": b""}, "this log is empty"),
        ({"a": text([header("a")]) + b"noise\n"}, "the agent's log can't be read"),
        (
            {
                "a": text([header("a", lineage="1")]),
                "b": text([header("b", lineage="1")]),
            },
            "project/b/session.jsonl: lineage '1' is that of project/a/session.jsonl already",
        ),
    ],
)
def test_a_log_that_is_none_is_the_agents_fault(
    tmp_path: Path, logs: dict[str, bytes], what: str
) -> None:
    for name, data in logs.items():
        write(tmp_path, name, data)

    with pytest.raises(AgentError) as caught:
        harvest(tmp_path)

    assert what in str(caught.value)


def test_a_compressed_log_may_be_cut_in_a_frame(tmp_path: Path) -> None:
    path = write(tmp_path, "a", b"").rename(tmp_path / "session.jsonl.zstd")
    path.write_bytes(zstd().compress(text([header("a")]))[:-3])

    with pytest.raises(AgentError):
        harvest(tmp_path)


def test_a_compressed_log_that_is_none_is_the_agents_fault(tmp_path: Path) -> None:
    write(tmp_path, "a", b"").rename(tmp_path / "session.jsonl.zstd")
    (tmp_path / "session.jsonl.zstd").write_bytes(b"no frame at all")

    with pytest.raises(AgentError, match="the agent's log is no zstd stream"):
        harvest(tmp_path)


def test_a_growing_log_is_read_line_by_line(tmp_path: Path) -> None:
    tails = LogTails(tmp_path)
    assert tails.events("a") == ()

    path = write(tmp_path, "a", text([header("a")])[:10])
    assert tails.events("a") == ()
    whole = text([header("a"), event(0), event(1, "turn/end")])
    for end in range(10, len(whole) + 1, 7):
        path.write_bytes(whole[:end])
        tails.events("a")
    path.write_bytes(whole)

    assert [one["type"] for one in tails.events("a")] == ["turn/start", "turn/end"]
    assert tails.events("other") == ()


def test_a_growing_compressed_log_is_read_frame_by_frame(tmp_path: Path) -> None:
    path = write(tmp_path, "a", b"").with_name("session.jsonl.zstd")
    path.with_name("session.jsonl").unlink()
    data = b"".join(zstd().compress(text([line])) for line in (header("a"), event(0), event(1)))
    tails = LogTails(tmp_path)

    for end in range(0, len(data) + 1, 5):
        path.write_bytes(data[:end])
        tails.events("a")
    path.write_bytes(data)

    assert len(tails.events("a")) == 2


def test_children_come_in_order_of_lineage(tmp_path: Path) -> None:
    write(tmp_path, "a", text([header("a", lineage="1")]))
    for name, lineage in (("b", "1/1.1.2"), ("c", "1/1.1.1")):
        lines = [header(name, lineage=lineage, parentSession="a"), event(0, name)]
        write(tmp_path, name, text(lines))

    children = LogTails(tmp_path).children("a")

    assert [events[0]["type"] for events in children] == ["c", "b"]


def test_what_is_no_log_waits_for_the_harvest(tmp_path: Path) -> None:
    write(tmp_path, "a", b"noise\n")
    (tmp_path / "session.jsonl.zstd").write_bytes(b"no frame at all")
    write(tmp_path, "b", text([header("b"), event(0)]))

    assert len(LogTails(tmp_path).events("b")) == 1


def test_what_is_no_regular_file_is_no_log(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "a" / "session.jsonl")
    (tmp_path / "b" / "session.jsonl").symlink_to("/dev/zero")
    (tmp_path / "c" / "session.jsonl").mkdir()

    assert harvest(tmp_path) == []
