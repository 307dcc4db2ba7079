"""The directory of one run: made under a lock, named so that it occurs nowhere by chance.

A run holds a lock in its directory. Directories that nobody holds are left over
from a killed runner, and swept by the next run of the same user.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from snapshot_harness.exceptions import HarnessError

LENGTH = 80
"""The length of every run directory's path, so that sizes computed from paths never move."""

_RUN, _WORKSPACE = "acpsnap-", "acpsnap-cwd-"
"""Two prefixes: what looks like a run and has no lock is swept, also beside a run's workspace."""

_SHORTEST_RANDOM = 12
_ALLOWED = re.compile(r"[A-Za-z0-9._/-]+")
_OURS = re.compile(rf"{_RUN}[0-9a-f]{{{_SHORTEST_RANDOM},}}")
_OUR_WORKSPACE = re.compile(rf"{_WORKSPACE}[0-9a-f]{{{_SHORTEST_RANDOM},}}")
_LOCK = "lock"
_ELSEWHERE = "elsewhere"
PARTS = ("cwd", "home", "tmp", "sessions", "spill", "verdict")


class RunDirectoryError(HarnessError):
    """A directory can't hold a run."""

    def __init__(self, *, path: Path, what: str, source: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: {what}\n"
            "  A run's paths must be spelled the same everywhere, and have a fixed length.\n"
            f"  hint: set {source} to a short directory of letters, digits and ._/-"
        )


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """One run's directory and the lock that keeps it from being swept."""

    path: Path
    cwd: Path
    lock: int

    @property
    def removals(self) -> list[Path]:
        """What must be gone when the run is over."""
        return [self.path] if self.cwd.parent == self.path else [self.cwd, self.path]

    def remove(self) -> None:
        """Remove everything, and give the lock back."""
        if self.cwd.parent != self.path:
            remove_tree(self.cwd)
        # The lock goes last: until then a sweep sees that somebody is at it.
        for part in PARTS:
            remove_tree(self.path / part)
        remove_tree(self.path)
        with contextlib.suppress(OSError):
            os.close(self.lock)


def make_run_directory(
    *, workspace_parent: Path | None = None, announce: Callable[[Path], None] = lambda _: None
) -> RunDirectory:
    """Make a run directory and its parts; `announce` hears of each before it is made.

    Raises:
        RunDirectoryError: The temporary directory can't hold one.
    """
    temp = Path(tempfile.gettempdir()).resolve()
    path = _generated(temp, _RUN, "TMPDIR")
    elsewhere = None
    if workspace_parent is not None:
        elsewhere = _generated(workspace_parent.resolve(), _WORKSPACE, "workspace_parent")
    with _user_lock(temp):
        announce(path)
        path.mkdir(mode=0o700)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    # Whatever happens from here on, the directory is known and locked: it can be swept.
    try:
        cwd = path / "cwd" if elsewhere is None else elsewhere
        if elsewhere is not None:
            (path / _ELSEWHERE).write_text(str(elsewhere))
            announce(elsewhere)
            elsewhere.mkdir(mode=0o700)
        for part in PARTS:
            if part != "cwd" or elsewhere is None:
                (path / part).mkdir(mode=0o700)
    except BaseException:
        RunDirectory(path, path / "cwd", lock).remove()
        raise
    return RunDirectory(path, cwd, lock)


def sweep(kill: Callable[[Path], object] = lambda _: None) -> list[Path]:
    """Remove the run directories of this user that nobody holds; `kill` ends what runs in one."""
    temp = Path(tempfile.gettempdir()).resolve()
    swept = []
    with _user_lock(temp):
        for path in _candidates(temp):
            lock = _try_lock(path)
            if lock is None:
                continue
            kill(path)
            cwd = _written_elsewhere(path)
            RunDirectory(path, cwd or path / "cwd", lock).remove()
            swept.append(path)
    return swept


def remove_tree(root: Path) -> None:
    """Remove a tree, also where the agent left directories that can't be written.

    One that is gone, or goes meanwhile, is as good. Nothing outside the tree is touched.
    """

    def repair(function: Callable[..., object], name: str, _error: object) -> None:
        path = Path(name)
        with contextlib.suppress(OSError):
            if path != root:
                os.chmod(path.parent, 0o700)  # noqa: PTH101  a directory of the tree, no link
            if path.is_dir() and not path.is_symlink():
                os.chmod(path, 0o700)  # noqa: PTH101  as above
                shutil.rmtree(path, ignore_errors=True)
            else:
                function(name)

    shutil.rmtree(root, onerror=repair)


def _generated(parent: Path, prefix: str, source: str) -> Path:
    room = LENGTH - len(str(parent / prefix))
    if _ALLOWED.fullmatch(str(parent)) is None:
        raise RunDirectoryError(path=parent, what="has a character other than those", source=source)
    if room < _SHORTEST_RANDOM:
        what = f"is too long by {_SHORTEST_RANDOM - room} characters"
        raise RunDirectoryError(path=parent, what=what, source=source)
    return parent / (prefix + secrets.token_hex(room)[:room])


@contextlib.contextmanager
def _user_lock(temp: Path) -> Iterator[None]:
    """Hold the one lock of this user in `temp`; the last holder leaves no file behind."""
    path = temp / f".acpsnap-{os.getuid()}.lock"
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Whoever held it before has removed the file: then this lock guards nothing.
            if _is_same(file, path):
                yield
                path.unlink()
                return
        finally:
            os.close(file)


def _is_same(file: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    here = os.fstat(file)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _candidates(temp: Path) -> Iterator[Path]:
    """Yield what looks like a run directory of this user, by name, length, owner and kind."""
    for name in os.listdir(temp):  # noqa: PTH208  names are enough
        path = temp / name
        if _OURS.fullmatch(name) is None or len(str(path)) != LENGTH:
            continue
        with contextlib.suppress(FileNotFoundError):
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                yield path


def _try_lock(path: Path) -> int | None:
    """Return the directory's lock, if nobody holds it.

    Directories are made with their locks under the user's, so one without a lock is left over
    from a maker that was killed, or is just being removed.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path / _LOCK, flags)
    except FileNotFoundError:
        remove_tree(path)
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _written_elsewhere(path: Path) -> Path | None:
    try:
        elsewhere = Path((path / _ELSEWHERE).read_text())
    except (OSError, ValueError):
        return None
    # Only what a run makes is ever removed, whatever the file says.
    is_ours = _OUR_WORKSPACE.fullmatch(elsewhere.name) is not None and len(str(elsewhere)) == LENGTH
    return elsewhere if is_ours and elsewhere.is_absolute() else None
