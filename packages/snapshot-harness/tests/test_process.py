"""The agent's process on its own: what holds its pipes, and what never ends."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from kit import open_files

from snapshot_harness.process import QUEUED, TAIL, AgentProcess, Event

ESCAPED = """
import os, subprocess
yes = subprocess.Popen(["yes", str(os.getpid())], start_new_session=True)
print(yes.pid, flush=True)
"""


def ignore(_: Event) -> None:
    """Take nothing."""


def test_a_process_that_escaped_and_never_stops_writing_does_not_hold_the_end_up(
    tmp_path: Path,
) -> None:
    warm = AgentProcess([sys.executable, "-c", ""], env={}, cwd=tmp_path)
    warm.close()  # from now on the watchdog runs
    before = open_files()
    agent = AgentProcess([sys.executable, "-c", ESCAPED], env={"PATH": os.defpath}, cwd=tmp_path)
    first = agent.events.get(timeout=10)
    assert isinstance(first, bytes)
    pid = int(first.split(b"\n")[0])
    try:
        assert agent.end(time.monotonic() + 10, ignore).status == 0
        assert not agent.drain(ignore, seconds=0.01)
        agent.close()
        assert open_files() == before
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_what_nobody_looks_at_does_not_pile_up(tmp_path: Path) -> None:
    agent = AgentProcess(["yes"], env={"PATH": os.defpath}, cwd=tmp_path)
    ends = time.monotonic() + 10
    while agent.events.qsize() <= QUEUED:
        assert time.monotonic() < ends

    agent.kill()
    agent.end(time.monotonic() + 10, ignore)
    assert agent.events.qsize() <= QUEUED + 1
    agent.close()


def test_the_tail_of_stderr_begins_with_no_part_of_a_word(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 10
    text = f"key {secret}\n" + "." * (TAIL - 20)
    agent = AgentProcess(
        [sys.executable, "-c", f"import sys; sys.stderr.write({text!r})"], env={}, cwd=tmp_path
    )
    agent.end(time.monotonic() + 10, ignore)
    agent.close()

    assert agent.stderr_tail == f"… (28 bytes before)\n…\n{'.' * (TAIL - 20)}"
