"""One process of the agent: its pipes pumped by threads into one queue, and its end."""

import contextlib
import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from snapshot_harness.exceptions import AgentExitedError
from snapshot_harness.json_value import after_word
from snapshot_harness.watchdog import WATCHDOG

PIECE = 65536
TAIL = 8192
TERM_S = 2.0
DRAIN_S = 5.0
STEP_S = 0.005
QUEUED = 16
"""How many pieces of stdout may wait to be looked at."""


class Signal(Enum):
    """What the threads tell besides bytes."""

    SENT = "one write is done"
    CLOSED = "the agent reads no more"
    END = "the agent's stdout has ended"


Event: TypeAlias = bytes | Signal


@dataclass(frozen=True, slots=True)
class Ending:
    """How the process ended, and what had to be done for it."""

    status: int
    forced: str = ""


class AgentProcess:
    """A running agent in a process group and session of its own."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._tail = bytearray()
        self._stderr_bytes = 0
        self._closing = threading.Event()
        self._writes: queue.SimpleQueue[tuple[bytes, bool] | None] = queue.SimpleQueue()
        self._popen = _spawn(argv, env, cwd)
        self.pid = self._popen.pid
        WATCHDOG.add_group(self.pid)
        self._wake_read, self._wake_write = os.pipe()
        self._pipes = [
            pipe.fileno()
            for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr)
            if pipe is not None
        ]
        os.set_blocking(self._pipes[0], False)
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._write_all, self._read_stdout, self._read_stderr)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, data: bytes, *, counted: bool = True) -> None:
        """Have bytes written to stdin; a counted write is told when it is done."""
        self._writes.put((data, counted))

    def close_stdin(self) -> None:
        """Close stdin when everything before is written."""
        self._writes.put(None)

    @property
    def status(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._popen.poll()

    @property
    def stderr_tail(self) -> str:
        """The last the agent wrote to stderr."""
        text = bytes(self._tail).decode("utf-8", "replace")
        cut = self._stderr_bytes - len(self._tail)
        # A word that lost its beginning may be the rest of a credential, which nobody recognizes.
        return f"… ({cut} bytes before)\n…{text[after_word(text, 1) :]}" if cut else text

    def end(self, deadline: float, take: Callable[[Event], None]) -> Ending:
        """Wait for the exit until `deadline`, then insist; hand on what it still writes."""
        forced = ""
        if not self._exits_by(deadline, take):
            forced = "it did not exit, and was sent SIGTERM"
            self._signal(signal.SIGTERM)
            if not self._exits_by(time.monotonic() + TERM_S, take):
                forced = "it did not exit, not on SIGTERM either, and was killed"
                self.kill()
        return Ending(self._popen.wait(), forced)

    def kill(self) -> None:
        """Kill the whole group."""
        self._signal(signal.SIGKILL)

    def drain(self, take: Callable[[Event], None], *, seconds: float) -> bool:
        """Hand on what the pipes still hold; tell whether both have ended."""
        deadline = time.monotonic() + seconds
        readers = self._threads[1:]
        while any(thread.is_alive() for thread in readers) and time.monotonic() < deadline:
            self._hand_on(take)
            for thread in readers:
                thread.join(STEP_S)
        # The readers first: what they read before their end is handed on below.
        ended = not any(thread.is_alive() for thread in readers)
        self._hand_on(take)
        return ended

    def close(self) -> None:
        """Stop the threads and close the pipes; the process is gone."""
        self._popen.wait()
        self._closing.set()
        self._writes.put(None)
        os.write(self._wake_write, b"x")
        for thread in self._threads:
            thread.join()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        WATCHDOG.drop_group(self.pid)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _exits_by(self, deadline: float, take: Callable[[Event], None]) -> bool:
        while self._popen.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            # The end of stdout mostly comes with the exit; a grandchild may hold it open.
            with contextlib.suppress(queue.Empty):
                take(self.events.get(timeout=min(left, 0.05)))
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(0 if self.events.qsize() else min(left, 0.002))
        return True

    def _hand_on(self, take: Callable[[Event], None]) -> None:
        """Hand on what has come by now: something may go on writing for ever."""
        for _ in range(self.events.qsize()):
            take(self.events.get_nowait())

    def _read_stdout(self) -> None:
        while data := self._read(self._pipes[1]):
            # The agent waits, as it does for any slow reader: nothing piles up here.
            while self.events.qsize() > QUEUED and not self._closing.wait(STEP_S):
                pass
            self.events.put(data)
        self.events.put(Signal.END)

    def _read_stderr(self) -> None:
        while data := self._read(self._pipes[2]):
            self._stderr_bytes += len(data)
            self._tail += data
            del self._tail[:-TAIL]

    def _read(self, pipe: int) -> bytes:
        """Return what the pipe holds; nothing at its end, or when it is time to stop."""
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        ready = {number for number, _ in poll.poll()}
        return b"" if self._wake_read in ready else os.read(pipe, PIECE)

    def _write_all(self) -> None:
        while (entry := self._writes.get()) is not None:
            data, counted = entry
            if not self._write(memoryview(data)):
                self.events.put(Signal.CLOSED)
                break
            if counted:
                self.events.put(Signal.SENT)
        if self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def _write(self, data: memoryview) -> bool:
        """Write everything; tell whether the agent took it."""
        pipe = self._pipes[0]
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        poll.register(self._wake_read, select.POLLIN)
        while data:
            ready = {number for number, _ in poll.poll()}
            if pipe not in ready:
                return False
            try:
                data = data[os.write(pipe, data) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True


def _spawn(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603  the suite names the command
            argv,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            umask=0o022,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        # The second: a name or a value that no system can pass on.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise AgentExitedError(
            what=f"the agent did not start: {reason}: {argv[0]!r}",
            hint="correct `command` in suite.toml, or `env` there or in scenario.toml",
        ) from None
