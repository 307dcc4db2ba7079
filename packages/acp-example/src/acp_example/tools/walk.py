"""The files below a directory, always in the same order, never through a symbolic link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from acp_example.nofollow import open_real

SKIPPED: Final = frozenset(
    {
        ".git",
        ".hg",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
    }
)
_VISITED: Final = 200_000


@dataclass(slots=True)
class Walk:
    """Walks one directory; `stopped` says that there is more than could be looked at."""

    root: Path
    limit: int = _VISITED
    cancelled: bool = False
    stopped: bool = False
    _visited: int = field(default=0, init=False)

    def files(self) -> Iterator[str]:
        """Yield the regular files, as paths below the root with slashes, sorted by name.

        Directories that hold no one's own work are left out, unless the walk starts in one.
        """
        pending = self._entries("")
        while pending:
            path, is_folder = pending.pop()
            self._visited += 1
            if self.cancelled or self._visited > self.limit:
                self.stopped = True
                return
            if is_folder:
                pending += self._entries(f"{path}/")
            else:
                yield path

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return what is in a directory, last name first.

        What can't be read is as if it were not there.
        """
        found: list[tuple[str, bool]] = []
        with suppress(OSError), _listed(self.root / folder) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                is_folder = stat.S_ISDIR(mode) and entry.name not in SKIPPED
                if is_folder or stat.S_ISREG(mode):
                    found.append((f"{folder}{entry.name}", is_folder))
        return sorted(found, reverse=True)


@contextmanager
def _listed(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    descriptor = open_real(str(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)
