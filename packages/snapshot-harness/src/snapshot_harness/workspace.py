"""A scenario's workspace, copied into the agent's working directory."""

import os
import shutil
import stat
from pathlib import Path


def copy_workspace(source: Path, cwd: Path) -> None:
    """Copy a scenario's workspace, with modes that hang neither on the checkout nor the umask."""
    if not source.is_dir():
        return
    for directory, names, files in os.walk(source):
        below = cwd / Path(directory).relative_to(source)
        below.mkdir(exist_ok=True)
        if below != cwd:
            below.chmod(0o755)
        links = [name for name in names if Path(directory, name).is_symlink()]
        for name in [*files, *links]:
            _copy_file(Path(directory, name), below / name)


def _copy_file(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    shutil.copyfile(source, target)
    runs = source.stat().st_mode & stat.S_IXUSR
    target.chmod(0o755 if runs else 0o644)
