"""Pytest interrupted, ended and killed while agents run: nothing stays behind."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit import add_scenario, make_suite, processes_with, run_directories, say, set_up

from snapshot_harness.suite import Suite

WITHIN_S = 15.0
START_S = 60.0


@pytest.fixture
def temp() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="k"))
    yield directory
    directory.rmdir()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two scenarios whose agents never end by themselves, each with a child that escaped."""
    made = make_suite(tmp_path / "scenarios")
    for name in ("one", "two"):
        add_scenario(made, name, turns=[[say("Hi")]], fake="escaped ignore-term hang")
    return made


def wait_until(check: Callable[[], bool], what: str, seconds: float = WITHIN_S) -> None:
    ends = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < ends, what
        select.select([], [], [], 0.05)


def spawn(suite: Suite, temp: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start pytest over a suite, in a group of its own, its run directories below `temp`."""
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--snapshot-mode=refresh"]
    return subprocess.Popen(  # noqa: S603  the test's own
        [*command, str(suite.path), *arguments],
        cwd=suite.directory,
        env={**env, "TMPDIR": str(temp), "PYTEST_DEBUG_TEMPROOT": str(suite.directory.parent)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@contextmanager
def started(suite: Suite, temp: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start pytest, and wait until its agents and their children run."""
    mark = f"DSH_SNAPSHOT_RUN={temp}"
    agents = 2 if "-n" in arguments else 1
    with spawn(suite, temp, *arguments) as process:
        try:
            wait_until(lambda: len(processes_with(mark)) >= 2 * agents, "no agent started", START_S)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def watchdogs_of(runner: int) -> list[int]:
    """The children of a process that are shells."""
    found = []
    for pid in processes_with("DSH_SNAPSHOT_RUN=$word"):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if stat[1] == str(runner):
            found.append(pid)
    return found


def left(temp: Path) -> list[object]:
    return [*processes_with(f"DSH_SNAPSHOT_RUN={temp}"), *run_directories(temp)]


def interrupt_all(process: subprocess.Popen[bytes]) -> None:
    """Do as a terminal does on Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()


def kill_all(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize("how", [interrupt_all, end, kill, kill_all])
def test_nothing_stays_behind(
    suite: Suite,
    temp: Path,
    how: Callable[[subprocess.Popen[bytes]], None],
    workers: tuple[str, ...],
) -> None:
    with started(suite, temp, *workers) as process:
        how(process)
        # An interrupted controller gives its workers as long as xdist says.
        process.wait(START_S)

        wait_until(lambda: left(temp) == [], "something stayed behind")


def test_what_even_the_watchdog_missed_is_swept_by_the_next_run(suite: Suite, temp: Path) -> None:
    with started(suite, temp) as process:
        for pid in watchdogs_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        kill_all(process)
        process.wait(WITHIN_S)
        assert left(temp) != []

        for name in ("one", "two"):
            set_up(suite.directory / name)
        with spawn(suite, temp) as run:
            assert b"2 passed" in run.communicate()[0]

        wait_until(lambda: left(temp) == [], "something stayed behind")


def test_two_runs_at_once_do_not_meet(tmp_path: Path, temp: Path) -> None:
    runs = []
    for name in ("first", "second"):
        suite = make_suite(tmp_path / name)
        for scenario in ("one", "two"):
            add_scenario(suite, scenario, turns=[[say("Hi")]])
        runs.append(spawn(suite, temp, "-n", "2"))

    texts = [run.communicate()[0].decode() for run in runs]

    assert all("2 passed" in text for text in texts), texts
    wait_until(lambda: left(temp) == [], "something stayed behind")


def test_eight_workers_do_not_meet(suite: Suite, temp: Path) -> None:
    for number in range(8):
        add_scenario(suite, f"of-{number}", turns=[[say("Hi")]])
    for name in ("one", "two"):
        set_up(suite.directory / name)

    with spawn(suite, temp, "-n", "8") as run:
        assert b"10 passed" in run.communicate()[0]

    wait_until(lambda: left(temp) == [], "something stayed behind")
