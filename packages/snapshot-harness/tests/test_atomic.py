import fcntl
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snapshot_harness.atomic import pending, roll_forward, write_scenario
from snapshot_harness.exceptions import FixtureError

OLD = {"a": b"old a\n", "b": b"old b\n", "stale": b"stale\n", "same": b"same\n"}
NEW: dict[str, bytes | None] = {
    "a": b"new a\n",
    "b": b"new b\n",
    "c": b"new c\n",
    "stale": None,
    "same": b"same\n",
}
WHOLE_NEW = {name: data for name, data in NEW.items() if data is not None}

KILLED = """
import os, signal, sys
from pathlib import Path
from snapshot_harness.atomic import write_scenario
directory, left = sys.argv[1], int(sys.argv[2])
new = {"a": b"new a\\n", "b": b"new b\\n", "c": b"new c\\n", "stale": None, "same": b"same\\n"}
def hook(event, arguments):
    global left
    if event in {"open", "os.rename", "os.remove", "os.scandir"}:
        if str(arguments[0]).startswith(directory):
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
sys.addaudithook(hook)
write_scenario(Path(directory), new)
left = 10**9
print("done")
"""


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def fill(directory: Path) -> None:
    for name, data in OLD.items():
        (directory / name).write_bytes(data)


def test_files_are_replaced_added_and_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    inode = (tmp_path / "same").stat().st_ino

    assert write_scenario(tmp_path, NEW) == ["a", "b", "c", "stale"]
    assert files(tmp_path) == WHOLE_NEW
    assert (tmp_path / "same").stat().st_ino == inode


def test_what_is_there_already_is_not_written(tmp_path: Path) -> None:
    fill(tmp_path)
    before = (tmp_path / "a").stat().st_mtime_ns

    assert write_scenario(tmp_path, {**OLD, "never": None}) == []
    assert (tmp_path / "a").stat().st_mtime_ns == before
    assert files(tmp_path) == OLD


@pytest.mark.parametrize("steps", range(40))
def test_killed_at_any_point_a_scenario_is_wholly_old_or_wholly_new(
    tmp_path: Path, steps: int
) -> None:
    fill(tmp_path)

    done = subprocess.run(  # noqa: S603  this interpreter
        [sys.executable, "-c", KILLED, str(tmp_path), str(steps)],
        capture_output=True,
        check=False,
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
    )

    if done.stdout == b"done\n":
        assert files(tmp_path) == WHOLE_NEW
        assert pending(tmp_path) is None
        assert steps > 15
        return
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = files(tmp_path)
    found = pending(tmp_path)
    assert files(tmp_path) == left, "looking touches nothing"
    begun = found is not None and found.kind == "commit"
    assert roll_forward(tmp_path) == (found is not None)
    assert files(tmp_path) in ([WHOLE_NEW] if begun else [OLD, WHOLE_NEW])
    assert pending(tmp_path) is None
    assert not roll_forward(tmp_path)


def test_a_pending_commit_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / ".commit").write_text('{"rename": [], "remove": []}')

    found = pending(tmp_path)

    assert found is not None
    assert str(found.problem) == (
        f"{tmp_path}/.commit: a write of this scenario was interrupted\n"
        "  All of its files are there and wait for the swap.\n"
        "  hint: run refresh (or record) for this scenario: it finishes or undoes what was begun"
    )


def test_new_files_without_a_list_are_told_and_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "a.new").write_bytes(b"half")

    found = pending(tmp_path)

    assert found is not None
    assert found.problem.path == tmp_path / "a.new"
    assert "untouched" in found.problem.why
    assert roll_forward(tmp_path)
    assert files(tmp_path) == OLD


def test_the_next_write_finishes_the_one_before(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "b.new").write_bytes(b"between\n")
    (tmp_path / ".commit").write_text(json.dumps({"rename": ["b"], "remove": ["stale"]}))

    assert write_scenario(tmp_path, {"a": b"last\n"}) == ["a"]
    assert files(tmp_path) == {"a": b"last\n", "b": b"between\n", "same": b"same\n"}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"rename": []}', '{"rename": ["../x"], "remove": []}', '{"rename": 1}']
)
def test_a_list_that_is_none_of_ours_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / ".commit").write_text(text)

    with pytest.raises(FixtureError, match="no list of renames"):
        roll_forward(tmp_path)


def test_a_full_disk_leaves_the_old_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    synced = iter([None, None])

    def sync(_: int) -> None:
        if next(synced, "full") == "full":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)

    with pytest.raises(OSError, match="No space left"):
        write_scenario(tmp_path, NEW)

    assert files(tmp_path) == OLD


def test_an_interrupt_after_the_list_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    replace = os.replace

    def interrupted(source: Path, target: Path) -> None:
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_scenario(tmp_path, NEW)
    monkeypatch.undo()

    assert roll_forward(tmp_path)
    assert files(tmp_path) == WHOLE_NEW


def test_a_directory_that_is_not_there_has_nothing_pending(tmp_path: Path) -> None:
    assert pending(tmp_path / "none") is None


def test_two_writers_take_turns_and_the_last_one_is_whole(tmp_path: Path) -> None:
    def write(mark: bytes) -> None:
        for number in range(40):
            data = b"%s %d\n" % (mark, number)
            write_scenario(tmp_path, {"a": data, "b": data})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (b"one", b"two")))

    left = files(tmp_path)
    assert set(left) == {"a", "b"}
    assert left["a"] == left["b"]


def test_a_scenario_is_locked_from_the_first_new_file_to_the_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    sync, seen = os.fsync, []

    def look(descriptor: int) -> None:
        other = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        seen.append(sorted(files(tmp_path)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    write_scenario(tmp_path, NEW)

    assert "a.new" in seen[0]
    assert seen[-1] == sorted(WHOLE_NEW)
