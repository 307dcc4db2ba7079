import subprocess
import sys
from pathlib import Path

import pytest
from kit import STOPS, sleeper

from snapshot_harness.leftovers import kill_escaped, kill_group, own_children

SLEEP = "/bin/sleep"


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
    process = subprocess.Popen(  # noqa: S603  a constant
        [SLEEP, "0"], start_new_session=True, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        stdout.read()  # ends with the process, which nobody has waited for

    assert kill_group(process.pid) == []
    process.wait()


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
