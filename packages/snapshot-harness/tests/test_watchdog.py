import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import runs

from snapshot_harness.watchdog import Watchdog

OWNER = """
import os, subprocess, sys
from pathlib import Path
from snapshot_harness.watchdog import WATCHDOG
gone, kept = Path(sys.argv[1]), Path(sys.argv[2])
WATCHDOG.add_directory(gone)
WATCHDOG.add_directory(kept)
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
freed = subprocess.Popen(["sleep", "600"], start_new_session=True)
escaped = subprocess.Popen(
    ["sleep", "600"], start_new_session=True, env={**os.environ, "DSH_SNAPSHOT_RUN": str(gone)}
)
below = subprocess.Popen(["sleep", "600"], start_new_session=True, cwd=gone)
WATCHDOG.add_group(child.pid)
WATCHDOG.add_group(freed.pid)
WATCHDOG.drop_group(freed.pid)
WATCHDOG.drop_directory(kept)
print(child.pid, freed.pid, escaped.pid, below.pid, WATCHDOG.pid, flush=True)
sys.stdin.read()
"""


def wait_until(check: Callable[[], bool], seconds: float = 15) -> bool:
    ends = time.monotonic() + seconds
    while not check():
        if time.monotonic() > ends:
            return False
        select.select([], [], [], 0.02)
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_watchdog_cleans_up_after_a_runner_that_was_killed(
    tmp_path: Path, number: signal.Signals
) -> None:
    gone, kept = tmp_path / "gone", tmp_path / "kept"
    for directory in (gone, kept):
        directory.mkdir()
        (directory / "file").touch()
    owner = subprocess.Popen(  # noqa: S603  the test's own
        [sys.executable, "-c", OWNER, str(gone), str(kept)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    child, freed, escaped, below, dog = (int(word) for word in owner.stdout.readline().split())
    for mild in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(dog, mild)

    owner.send_signal(number)
    owner.wait()

    assert wait_until(lambda: not gone.exists() and not runs(child) and not runs(dog))
    if sys.platform == "linux":
        assert not runs(escaped)
        assert not runs(below)
    else:
        for pid in (escaped, below):
            os.kill(pid, signal.SIGKILL)
    assert kept.exists()
    assert runs(freed)
    os.kill(freed, signal.SIGKILL)
    owner.stdin.close()
    owner.stdout.close()


def test_a_watchdog_with_nothing_left_ends_at_once(tmp_path: Path) -> None:
    dog = Watchdog()
    dog.add_directory(tmp_path)
    dog.drop_directory(tmp_path)

    dog.close()
    dog.close()

    assert tmp_path.is_dir()


def test_a_watchdog_that_somebody_killed_is_no_reason_to_fail(tmp_path: Path) -> None:
    dog = Watchdog()
    dog.add_directory(tmp_path / "x")
    assert dog.pid is not None
    os.kill(dog.pid, signal.SIGKILL)
    assert wait_until(lambda: not runs(dog.pid or 0))

    dog.drop_directory(tmp_path / "x")
    dog.close()


def test_a_forked_process_gets_a_watchdog_of_its_own(tmp_path: Path) -> None:
    answer, told = os.pipe()
    dog = Watchdog()
    dog.add_directory(tmp_path / "x")
    mine = dog.pid
    child = os.fork()
    if child == 0:
        dog.close()  # not its own
        dog.add_directory(tmp_path / "y")
        os.write(told, b"own" if dog.pid != mine else b"shared")
        dog.close()
        os._exit(0)

    os.waitpid(child, 0)

    assert os.read(answer, 10) == b"own"
    assert dog.pid == mine
    dog.close()
    os.close(answer)
    os.close(told)
