"""Processes that outlived the agent: of its group, or escaped from it."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHOWN = 120
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that should be gone."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.command})"


def kill_group(group: int) -> list[Leftover]:
    """Kill what is left of a process group, and name it; its leader has been waited for."""
    if not _signal(-group, 0):
        return []
    found = list(_members(group))
    _signal(-group, signal.SIGKILL)
    return found


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may be gone."""
    _signal(-group, number)


def kill_escaped(run: Path, *, also_below: Path | None = None) -> list[Leftover]:
    """Kill, and name, the processes that carry the run in their environment or work below it.

    Only Linux shows other processes' environment.
    """
    if not sys.platform.startswith("linux"):
        return []
    found = list(_escaped(run, also_below))
    for process in found:
        _signal(process.pid, signal.SIGKILL)
    return found


def _escaped(run: Path, also_below: Path | None) -> Iterator[Leftover]:
    mark = f"DSH_SNAPSHOT_RUN={run}".encode()
    places = tuple(f"{path}/" for path in (run, also_below) if path is not None)
    own = os.getpid()
    for name in os.listdir(_PROC):  # noqa: PTH208  names are enough
        if not name.isdecimal() or int(name) == own:
            continue
        entry = f"/proc/{name}"
        # A process that ends meanwhile, or is another user's, is none of ours.
        with contextlib.suppress(OSError):
            if _carries(entry, mark) or f"{os.readlink(f'{entry}/cwd')}/".startswith(places):  # noqa: PTH115  a link to text
                yield Leftover(int(name), _command(int(name)))


def _carries(entry: str, mark: bytes) -> bool:
    with open(f"{entry}/environ", "rb") as file:  # noqa: PTH123  hundreds per run
        return mark in file.read().split(b"\0")


def _members(group: int) -> Iterator[Leftover]:
    listing = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,pgid=,args="], capture_output=True, check=False, text=True
    )
    for line in listing.stdout.splitlines():
        pid, pgid, command = line.split(None, 2)
        if pgid == str(group):
            yield Leftover(int(pid), command[:SHOWN])


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        arguments = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
        return arguments.decode("utf-8", "replace").strip()[:SHOWN]
    return "?"


def _signal(target: int, number: int) -> bool:
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
