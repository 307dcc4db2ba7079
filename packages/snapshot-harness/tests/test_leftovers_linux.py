import subprocess
from pathlib import Path

import pytest
from kit import sleeper

from snapshot_harness import leftovers
from snapshot_harness.leftovers import kill_escaped


def test_what_escaped_is_found_by_its_environment_or_its_place(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    for directory in (run, other):
        directory.mkdir()
    marked = sleeper(env={"DSH_SNAPSHOT_RUN": str(run)})
    below, beside = sleeper(cwd=run), sleeper(cwd=other)
    stranger = sleeper(env={"DSH_SNAPSHOT_RUN": f"{run}x"})

    found = kill_escaped(run, also_below=other)

    assert {process.pid for process in found} == {marked.pid, below.pid, beside.pid}
    assert stranger.poll() is None
    stranger.kill()
    for process in (marked, below, beside, stranger):
        process.wait()


@pytest.mark.parametrize(("newest", "finds"), [(2**22, False), (0, True)])
def test_only_younger_processes_are_looked_at_unless_numbers_began_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: int, *, finds: bool
) -> None:
    old = sleeper(env={"DSH_SNAPSHOT_RUN": str(tmp_path)})
    monkeypatch.setattr(leftovers, "_newest", lambda: newest)

    found = kill_escaped(tmp_path, after=old.pid)

    assert [process.pid for process in found] == ([old.pid] if finds else [])
    old.kill()
    old.wait()


def test_what_ends_by_itself_did_not_escape(tmp_path: Path) -> None:
    process = subprocess.Popen(["/bin/sleep", "0.05"], cwd=tmp_path)

    assert kill_escaped(tmp_path, grace_s=10) == []
    assert process.wait() == 0


def test_what_a_killed_process_had_started_meanwhile_is_killed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sleeper(cwd=tmp_path)
    late: list[subprocess.Popen[bytes]] = []
    kill = leftovers._signal  # noqa: SLF001  the moment between two looks

    def killing(target: int, number: int) -> bool:
        if not late:
            late.append(sleeper(cwd=tmp_path))
        return kill(target, number)

    monkeypatch.setattr(leftovers, "_signal", killing)

    found = kill_escaped(tmp_path, grace_s=0)

    assert [one.pid for one in found] == [first.pid, late[0].pid]
    for process in (first, *late):
        assert process.wait(10) == -9
