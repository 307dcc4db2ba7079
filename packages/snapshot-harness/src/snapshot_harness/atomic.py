"""All-or-nothing writing of one scenario: new files beside the old, one list, then the swap."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from snapshot_harness.exceptions import FixtureError, Problem

COMMIT = ".commit"
NEW = ".new"

_HINT = "run refresh (or record) for this scenario: it finishes or undoes what was begun"


@dataclass(frozen=True, slots=True)
class Pending:
    """What an interrupted write left: a list that can be finished, or only new files."""

    directory: Path
    kind: Literal["commit", "leftover"]
    names: tuple[str, ...]

    @property
    def problem(self) -> Problem:
        """How it is told."""
        begun = self.kind == "commit"
        return Problem(
            path=self.directory / (COMMIT if begun else self.names[0]),
            what="a write of this scenario was interrupted",
            why="All of its files are there and wait for the swap."
            if begun
            else "It had not come to the swap; the committed files are untouched.",
            hint=_HINT,
        )


def write_scenario(directory: Path, files: Mapping[str, bytes | None]) -> list[str]:
    """Replace files of a scenario, all or none; `None` removes one. Return what changed.

    Killed at any point, it leaves the old scenario or a list that `roll_forward`
    finishes. Files that already are as asked for are not touched. One writer at
    a time: another one waits.
    """
    with _alone_in(directory):
        return _write(directory, files)


def _write(directory: Path, files: Mapping[str, bytes | None]) -> list[str]:
    _roll_forward(directory)
    changed = {name: data for name, data in files.items() if _read(directory / name) != data}
    if not changed:
        return []
    try:
        for name, data in changed.items():
            if data is not None:
                _write_synced(directory / (name + NEW), data)
        commit = {
            "rename": sorted(name for name, data in changed.items() if data is not None),
            "remove": sorted(name for name, data in changed.items() if data is None),
        }
        _write_synced(directory / (COMMIT + NEW), json.dumps(commit).encode() + b"\n")
        os.replace(directory / (COMMIT + NEW), directory / COMMIT)  # noqa: PTH105  one syscall
    except BaseException:
        # Nothing was swapped yet: a full disk or an interrupt leaves the old scenario.
        if not (directory / COMMIT).exists():
            _remove_new(directory)
        raise
    _sync_directory(directory)
    _roll_forward(directory)
    return sorted(changed)


def pending(directory: Path) -> Pending | None:
    """Return what an interrupted write left in a scenario, touching nothing."""
    if (directory / COMMIT).is_file():
        return Pending(directory, "commit", (COMMIT,))
    names = tuple(sorted(_new_names(directory)))
    return Pending(directory, "leftover", names) if names else None


def roll_forward(directory: Path) -> bool:
    """Finish an interrupted write; before its list was there, undo it. Tell if there was one.

    Raises:
        FixtureError: The list is not one that this package wrote.
    """
    if pending(directory) is None:
        return False
    with _alone_in(directory):
        return _roll_forward(directory)


def _roll_forward(directory: Path) -> bool:
    left = pending(directory)  # by now: another process may have finished it
    if left is None:
        return False
    if left.kind == "commit":
        commit = _read_commit(directory)
        for name in commit["rename"]:
            with contextlib.suppress(FileNotFoundError):  # renamed before the interruption
                os.replace(directory / (name + NEW), directory / name)  # noqa: PTH105  one syscall
        for name in commit["remove"]:
            (directory / name).unlink(missing_ok=True)
        _sync_directory(directory)
        (directory / COMMIT).unlink()
    _remove_new(directory)
    _sync_directory(directory)
    return True


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep other writers out, also those of other processes; the lock dies with its holder."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems lock no directory
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_commit(directory: Path) -> dict[str, list[str]]:
    path = directory / COMMIT
    try:
        commit: Any = json.loads(path.read_bytes())
        names = {key: list(commit[key]) for key in ("rename", "remove")}
    except (ValueError, KeyError, TypeError):
        names = {"remove": [None]}
    every = [name for listed in names.values() for name in listed]
    if all(isinstance(name, str) and name and Path(name).name == name for name in every):
        return names
    what, hint = "this is no list of renames and removals", "remove it, and refresh the scenario"
    raise FixtureError(problems=[Problem(path=path, what=what, hint=hint)])


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _new_names(directory: Path) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(directory):
            if entry.name.endswith(NEW) and entry.is_file(follow_symlinks=False):
                yield entry.name


def _remove_new(directory: Path) -> None:
    for name in list(_new_names(directory)):
        (directory / name).unlink(missing_ok=True)


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
