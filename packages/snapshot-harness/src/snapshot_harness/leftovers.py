"""Processes that outlived the agent: of its group, or escaped from it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHOWN = 120
GRACE_S = 0.2
STEP_S = 0.01
PASSES = 5
"""How often one looks: what was only just being killed may have started something."""

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that should be gone."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.command})"


def kill_group(group: int, *, grace_s: float = GRACE_S) -> list[Leftover]:
    """Kill what is left of a process group, and name it; its leader has been waited for."""
    ends = time.monotonic() + grace_s
    while _signal(-group, 0):
        found = list(_members(group))
        # What is ending by itself just now was not left behind.
        if not found or time.monotonic() >= ends:
            _signal(-group, signal.SIGKILL)
            return found
        time.sleep(STEP_S)
    return []


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may be gone."""
    _signal(-group, number)


def kill_escaped(
    run: Path, *, also_below: Path | None = None, after: int = 0, grace_s: float = GRACE_S
) -> list[Leftover]:
    """Kill, and name, the processes that carry the run in their environment or work below it.

    Only those younger than the process `after` are looked at, as far as numbers tell. Only
    Linux shows other processes' environment.
    """
    if not sys.platform.startswith("linux"):
        return []
    ends = time.monotonic() + grace_s
    found: dict[int, Leftover] = {}
    for _ in range(PASSES):
        fresh = [one for one in _escaped(run, also_below, after) if one.pid not in found]
        while fresh and time.monotonic() < ends:
            # As in a group: a killed tool's child may be ending just now.
            time.sleep(STEP_S)
            fresh = [one for one in _escaped(run, also_below, after) if one.pid not in found]
        if not fresh:
            break
        for process in fresh:
            _signal(process.pid, signal.SIGKILL)
            found[process.pid] = process
    return list(found.values())


def _escaped(run: Path, also_below: Path | None, after: int) -> Iterator[Leftover]:
    mark = f"DSH_SNAPSHOT_RUN={run}".encode()
    places = tuple(f"{path}/" for path in (run, also_below) if path is not None)
    own = os.getpid()
    if _newest() < after:  # numbers have started again from the beginning
        after = 0
    for name in os.listdir(_PROC):  # noqa: PTH208  names are enough
        if not name.isdecimal() or int(name) == own or int(name) <= after:
            continue
        entry = f"/proc/{name}"
        # A process that ends meanwhile, or is another user's, is none of ours.
        with contextlib.suppress(OSError):
            if _carries(entry, mark) or f"{os.readlink(f'{entry}/cwd')}/".startswith(places):  # noqa: PTH115  a link to text
                yield Leftover(int(name), _command(int(name)))


def _newest() -> int:
    """Return the number of the process that was made last."""
    return int((_PROC / "loadavg").read_text().split()[-1])


def _carries(entry: str, mark: bytes) -> bool:
    with open(f"{entry}/environ", "rb") as file:  # noqa: PTH123  hundreds per run
        return mark in file.read().split(b"\0")


def own_children() -> list[int]:
    """Return this process's children in its own group: those that Ctrl-C reaches with it."""
    own, group = os.getpid(), os.getpgrp()
    return [one.pid for one in _processes() if (one.parent, one.group) == (own, group)]


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    group: int
    is_zombie: bool


def _members(group: int) -> Iterator[Leftover]:
    """Yield the processes of a group that still run; a zombie only waits to be forgotten."""
    for one in _processes():
        if one.group == group and not one.is_zombie:
            yield Leftover(one.pid, _command(one.pid))


def _processes() -> Iterator[_Process]:
    return _linux_processes() if sys.platform.startswith("linux") else _ps_processes()


def _linux_processes() -> Iterator[_Process]:
    for name in os.listdir(_PROC):  # noqa: PTH208  names are enough
        if name.isdecimal():
            with contextlib.suppress(OSError):
                stat = (_PROC / name / "stat").read_text("utf-8", "replace")
                # The name in parentheses may hold anything.
                state, parent, group = stat.rpartition(")")[2].split()[:3]
                yield _Process(int(name), int(parent), int(group), state == "Z")


def _ps_processes() -> Iterator[_Process]:
    listing = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,stat="],
        capture_output=True,
        check=False,
        text=True,
    )
    for line in listing.stdout.splitlines():
        pid, parent, group, state = line.split()[:4]
        yield _Process(int(pid), int(parent), int(group), state.startswith("Z"))


def _command(pid: int) -> str:
    """Return a process's arguments, where the system shows them."""
    with contextlib.suppress(OSError):
        arguments = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
        # A process that has only just begun has none yet.
        return arguments.decode("utf-8", "replace").strip()[:SHOWN] or "?"
    return "?"


def _signal(target: int, number: int) -> bool:
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
