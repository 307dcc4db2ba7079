"""A command that the agent runs at the client: its output kept, its exit told, its end certain."""

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from snapshot_harness.leftovers import kill_group, signal_group
from snapshot_harness.watchdog import WATCHDOG

PIECE = 65536
REST_S = 0.2
"""How long the output may go on after the command's exit: something else may hold the pipe."""


class Terminal:
    """A command in a group of its own, its output kept up to a limit."""

    def __init__(
        self, argv: list[str], *, cwd: Path, env: Mapping[str, str], limit: int | None
    ) -> None:
        self._limit = limit
        self._output = bytearray()
        self._truncated = False
        self._lock = threading.Lock()
        self._waiting: list[Callable[[object], None]] = []
        self._status: dict[str, object] | None = None
        self._popen = subprocess.Popen(  # noqa: S603  what the agent asks for, as granted
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o022,
            bufsize=0,
        )
        WATCHDOG.add_group(self._popen.pid)
        self._wake_read, self._wake_write = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._reader.start()
        self._waiter.start()

    def output(self) -> dict[str, object]:
        """Return what was written so far, and the exit status once there is one."""
        with self._lock:
            text = bytes(self._output).decode("utf-8", "ignore")
            told: dict[str, object] = {"output": text, "truncated": self._truncated}
            return told if self._status is None else {**told, "exitStatus": self._status}

    def when_done(self, tell: Callable[[object], None]) -> None:
        """Tell the exit status, now or later."""
        with self._lock:
            if self._status is None:
                self._waiting.append(tell)
                return
        tell(self._status)

    def kill(self) -> None:
        """Kill the command; its output stays."""
        signal_group(self._popen.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the command and forget it, also where a process that escaped holds its pipe."""
        with self._lock:
            self._waiting.clear()
        self.kill()
        os.write(self._wake_write, b"x")
        self._reader.join()
        self._waiter.join()
        kill_group(self._popen.pid)  # what is only just dying is not taken for left behind
        if self._popen.stdout is not None:
            self._popen.stdout.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        WATCHDOG.drop_group(self._popen.pid)

    def _read(self) -> None:
        pipe = self._popen.stdout
        poll = select.poll()
        if pipe is not None:
            poll.register(pipe, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while pipe is not None and self._wake_read not in {ready for ready, _ in poll.poll()}:
            data = os.read(pipe.fileno(), PIECE)
            if not data:
                return
            with self._lock:
                self._output += data
                if self._limit is not None and len(self._output) > self._limit:
                    # From the front, as ACP says: the end is what one wants to see.
                    del self._output[: len(self._output) - self._limit]
                    self._truncated = True

    def _wait(self) -> None:
        code = self._popen.wait()
        self._reader.join(REST_S)
        status: dict[str, object] = {"exitCode": code, "signal": None}
        if code < 0:
            status = {"exitCode": None, "signal": signal_name(-code)}
        with self._lock:
            self._status = status
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell(status)


def signal_name(number: int) -> str:
    """Return how a signal is called; a real-time one has a number alone."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"SIG{number}"
