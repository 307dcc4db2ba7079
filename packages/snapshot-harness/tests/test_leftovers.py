import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snapshot_harness import leftovers
from snapshot_harness.leftovers import kill_escaped, kill_group, own_children

SLEEP = "/bin/sleep"


STOPS = ["/bin/sh", "-c", "echo; kill -s STOP $$"]


def sleeper(**rest: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401  keywords of Popen
    """A process that stays until it is killed; it has spoken, so the system knows its arguments."""
    process = subprocess.Popen(STOPS, stdout=subprocess.PIPE, start_new_session=True, **rest)  # noqa: S603  constants
    assert process.stdout is not None
    with process.stdout as stdout:
        assert stdout.readline() == b"\n"
    return process


def test_what_is_left_of_a_group_is_killed_and_named() -> None:
    process = sleeper()

    (found,) = kill_group(process.pid, grace_s=0)

    assert str(found) == f"{process.pid} ({' '.join(STOPS)})"
    assert process.wait() == -9
    assert kill_group(process.pid) == []


def test_what_ends_by_itself_was_not_left_behind() -> None:
    process = subprocess.Popen([SLEEP, "0.05"], start_new_session=True)  # noqa: S603  a constant

    assert kill_group(process.pid, grace_s=5) == []
    assert process.wait() in {0, -9}


def test_a_zombie_is_not_left_behind() -> None:
    process = subprocess.Popen([SLEEP, "0"], start_new_session=True)  # noqa: S603  a constant
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert kill_group(process.pid) == []
    process.wait()


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


def test_where_no_environment_is_shown_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert kill_escaped(tmp_path) == []


def test_without_proc_the_group_is_listed_by_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    process = sleeper()

    assert [found.pid for found in kill_group(process.pid, grace_s=0)] == [process.pid]
    process.wait()


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_own_children_are_those_that_an_interrupt_reaches(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    near = subprocess.Popen([SLEEP, "600"])  # noqa: S603  a constant
    far = sleeper()

    found = own_children()

    assert near.pid in found
    assert far.pid not in found
    for process in (near, far):
        process.kill()
        process.wait()
