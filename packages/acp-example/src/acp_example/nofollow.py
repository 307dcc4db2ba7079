"""Opening paths that were checked: a symbolic link that has come since is not followed.

A real path has no links in it, so each part of it is opened from within the folder before, links
refused. Imports `os` and little else: the search process starts with it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

# On Linux, to pass through a folder needs no permission to list it.
_PASSING = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def folder_of(path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the folder that a real path is in, for `dir_fd`, and its last name.

    With `make`, folders that are missing are made.

    Raises:
        OSError: As `os.open`; ELOOP where there is a link on the way.
    """
    *parts, name = [part for part in path.split("/") if part] or ["."]
    folder = os.open("/", _PASSING)
    try:
        for part in parts:
            inner = _inside(part, folder, make=make)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def status(name: str, folder: int) -> os.stat_result:
    """Return what the system says of an entry of a folder, which must be no link."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def status_of(path: str) -> os.stat_result:
    """Return what the system says of a real path."""
    with folder_of(path) as (folder, name):
        return status(name, folder)


def open_real(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a real path; `flags` and `mode` as for `os.open`."""
    with folder_of(path) as (folder, name):
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)


def _inside(name: str, folder: int, *, make: bool) -> int:
    try:
        return os.open(name, _PASSING, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError:
        status(name, folder)  # Linux says so of a link, too.
        raise
    os.mkdir(name, dir_fd=folder)
    return os.open(name, _PASSING, dir_fd=folder)
