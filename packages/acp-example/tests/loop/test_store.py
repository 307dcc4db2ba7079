import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Json, Make, conversation

from acp_example import zstd
from acp_example.log_file import Compression, Layout
from acp_example.sessions import SessionError
from acp_example.store import Store
from llm_replay.exceptions import SessionLogError
from llm_replay.script import derive_replay_script
from llm_replay.scripted_model import call, round_, say, think

FORMS: list[tuple[Layout, Compression]] = [
    ("plain", "none"),
    ("packed", "none"),
    ("plain", "zstd"),
    ("packed", "zstd"),
]


@pytest.fixture
def kept(bench: Make, tmp_path: Path) -> Callable[[Layout, Compression, Json], Bench]:
    """An agent whose logs are files, in one of the four forms."""

    def make(layout: Layout, compression: Compression, steps: Json) -> Bench:
        store = Store(tmp_path / "sessions", layout, compression)
        return bench(*steps, tools=[FakeTool("look")], store=store)

    return make


Kept = Callable[[Layout, Compression, Any], Bench]

STEPS = [
    round_(think("a long thought", split=6), say("I look", split=4), call("c", "look", split=2)),
    say("done", split=4),
]


@pytest.mark.parametrize(("layout", "compression"), FORMS)
def test_log_reads_back_in_each_of_its_forms(
    kept: Kept, layout: Layout, compression: Compression
) -> None:
    agent = kept(layout, compression, STEPS)

    agent.prompt()

    assert agent.log().events == agent.events
    assert conversation(agent.log()).messages == agent.history


@pytest.mark.parametrize(("layout", "compression"), FORMS)
def test_log_only_grows_and_goes_on_after_a_load(
    kept: Kept, layout: Layout, compression: Compression
) -> None:
    agent = kept(layout, compression, [*STEPS, say("again")])
    agent.prompt()
    (found,) = agent.host.store.all()
    agent.session.writer.close()
    before = found.path.read_bytes()

    agent.reload()
    agent.prompt()

    assert found.path.read_bytes().startswith(before)
    assert agent.log().events == agent.events


@pytest.mark.parametrize(("layout", "compression"), FORMS)
@pytest.mark.parametrize("cut", [1, 2, 3, 10, 100, 200])
def test_log_with_a_torn_end_is_repaired_wherever_it_is_torn(
    kept: Kept, layout: Layout, compression: Compression, cut: int
) -> None:
    agent = kept(layout, compression, [*STEPS, say("again")])
    agent.prompt()
    agent.session.writer.close()
    (found,) = agent.host.store.all()
    os.truncate(found.path, found.path.stat().st_size - cut)

    agent.reload()
    agent.prompt()

    assert agent.log().events == agent.events
    assert [event["seq"] for event in agent.events] == list(range(len(agent.events)))


def test_packed_log_is_smaller_and_a_zstd_log_smaller_still(kept: Kept) -> None:
    sizes = []
    for layout, compression in FORMS:
        agent = kept(layout, compression, STEPS)
        agent.prompt()
        agent.session.writer.close()
        found = max(agent.host.store.all(), key=lambda log: int(log.header["lineage"]))
        sizes.append(found.path.stat().st_size)

    assert sizes[0] > sizes[1] > sizes[3]
    assert sizes[0] > sizes[2]


def test_each_line_is_in_the_file_at_once(kept: Kept) -> None:
    agent = kept("plain", "none", STEPS)
    sizes: list[int] = []
    (tool,) = agent.tools

    async def look(_given: Json, _context: Json) -> str:
        (found,) = agent.host.store.all()
        sizes.append(len(found.path.read_bytes().splitlines()))
        return "seen"

    tool.body = look  # type: ignore[attr-defined] # a fake
    agent.prompt()

    assert sizes == [next(e["seq"] for e in agent.events if e["type"] == "tool/result") + 1]


def test_lineages_are_claimed_once_and_never_given_out_again(tmp_path: Path) -> None:
    store = Store(tmp_path)

    assert [store.claim(), store.claim()] == ["1", "2"]
    (tmp_path / ".lineages" / "7").touch()
    (tmp_path / ".lineages" / "notes").touch()
    assert store.claim() == "8"


def test_lineage_that_another_process_took_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.claim()
    monkeypatch.setattr(Path, "iterdir", lambda _path: iter(()))

    assert store.claim() == "2"


def test_child_logs_stand_beside_their_parent(tmp_path: Path) -> None:
    store = Store(tmp_path)

    store.create({"type": "session", "id": "c", "lineage": "1/2.1.1"}).close()

    assert (tmp_path / "1-2.1.1" / "session.jsonl").is_file()


def test_files_that_are_no_logs_of_ours_are_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name, text in {
        "empty": b"",
        "torn": b'{"type":"session"',
        "other": b'{"type":"note","lineage":"1"}\n',
        "foreign": b'{"type":"session","id":"x"}\n',
        "list": b"[]\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.jsonl").write_bytes(text)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "session.jsonl.zstd").write_bytes(b"not zstd")

    assert list(store.all()) == []
    assert store.find("x") is None


def broken(kept: Kept, edit: Callable[[list[bytes]], list[bytes]]) -> Bench:
    """An agent whose log was edited behind its back."""
    agent = kept("plain", "none", [say("ok")])
    agent.prompt()
    (found,) = agent.host.store.all()
    lines = found.path.read_bytes().splitlines(keepends=True)
    found.path.write_bytes(b"".join(edit(lines)))
    agent.checked = False
    return agent


def test_log_with_a_missing_event_is_refused(kept: Kept) -> None:
    agent = broken(kept, lambda lines: [*lines[:3], *lines[4:]])

    with pytest.raises(SessionError) as caught:
        agent.reload()

    (found,) = agent.host.store.all()
    assert str(caught.value) == (
        f"the session's log can't be read: {found.path}:4: event 3 stands where event 2 is due\n"
        "  hint: restore the log from a copy; a log is only ever appended to"
    )


def test_log_with_a_broken_line_is_refused_and_still_listed(kept: Kept) -> None:
    agent = broken(kept, lambda lines: [*lines[:2], b"{broken\n", *lines[2:]])

    with pytest.raises(SessionError) as caught:
        agent.reload()
    (found,) = agent.host.store.all()
    assert str(caught.value).startswith(
        f"the session's log can't be read: {found.path}:3:2: this is not JSON: "
    )

    (entry,) = agent.sessions.listed(cwd=None, cursor=None)["sessions"]
    assert "title" not in entry


def test_sessions_are_listed_the_latest_first(kept: Kept) -> None:
    agent = kept("plain", "none", [say("ok")])
    agent.prompt("hello   there\nfriend " + "x" * 100)
    agent.sessions.new(Path("/elsewhere"), lambda _id: agent.client)

    listed = agent.sessions.listed(cwd=None, cursor=None)

    assert [entry["cwd"] for entry in listed["sessions"]] == ["/elsewhere", "/project"]
    assert listed["sessions"][1]["title"] == ("hello there friend " + "x" * 100)[:80]
    assert "nextCursor" not in listed
    one = agent.sessions.listed(cwd="/project", cursor=None)["sessions"]
    assert [entry["sessionId"] for entry in one] == [agent.session.header["id"]]


def test_long_lists_come_in_pages(kept: Kept) -> None:
    agent = kept("plain", "none", [])
    for _ in range(51):
        agent.sessions.new(Path("/many"), lambda _id: agent.client).writer.close()

    first = agent.sessions.listed(cwd=None, cursor=None)
    second = agent.sessions.listed(cwd=None, cursor=first["nextCursor"])

    assert (len(first["sessions"]), len(second["sessions"])) == (50, 1)
    assert "nextCursor" not in second


def test_children_are_neither_listed_nor_loaded(kept: Kept) -> None:
    agent = kept("plain", "none", [])
    header = {
        "type": "session",
        "version": 1,
        "id": "child",
        "cwd": "/",
        "lineage": "1/1.1.1",
        "delegationDepth": 1,
    }
    agent.host.store.create(header).close()

    assert agent.sessions.listed(cwd=None, cursor=None)["sessions"] == []
    with pytest.raises(
        SessionError, match=r"^there is no session 'child'; session/list names them$"
    ):
        agent.sessions.load("child", Path("/"), lambda _id: agent.client)


def test_reading_refuses_what_is_no_log(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create({"type": "session", "version": 99, "id": "x", "lineage": "1"}).close()
    (found,) = store.all()

    with pytest.raises(SessionLogError):
        store.read(found)


@pytest.mark.parametrize("size", [1, 100, 300, 70_000])
def test_whole_blocks_are_found_in_frames_of_any_header(size: int) -> None:
    frame = zstd.compressor()
    data = frame.compress(b"x" * size, mode=frame.FLUSH_BLOCK)

    assert zstd.whole(data) == (len(data), False)
    assert zstd.whole(data + zstd.END_OF_FRAME) == (len(data) + 3, True)
    assert zstd.decompress(data + zstd.END_OF_FRAME) == b"x" * size


def test_torn_header_of_a_frame_is_no_block() -> None:
    assert zstd.whole(b"") == (0, True)
    assert zstd.whole(b"\x28\xb5\x2f") == (0, True)
    assert zstd.whole(b"\x28\xb5\x2f\xfd\x00") == (0, True)
    assert zstd.whole(b"junk" * 9) == (0, True)


def test_writer_that_is_closed_twice_closes_once(tmp_path: Path) -> None:
    writer = Store(tmp_path).create({"type": "session", "id": "x", "lineage": "1"})

    writer.close()
    writer.close()


@pytest.mark.parametrize(("layout", "compression"), FORMS)
def test_log_in_each_of_its_forms_is_a_script_that_replays_to_the_same(
    kept: Kept, bench: Make, layout: Layout, compression: Compression
) -> None:
    agent = kept(layout, compression, STEPS)
    agent.prompt()
    agent.session.writer.close()

    script = derive_replay_script(agent.log().events)
    again = bench(*script, tools=[FakeTool("look")])
    again.prompt()

    assert [message["content"] for message in again.history] == [
        message["content"] for message in agent.history
    ]
    assert again.of("assistant/chunk") == agent.of("assistant/chunk")
