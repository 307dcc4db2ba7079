"""Reading and replacing files on behalf of a tool, with the errors a model can act on."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from acp_example.exceptions import ToolError
from acp_example.tools import ToolContext

TEXT_LIMIT: Final = 16 * 1024 * 1024


def check_file(path: Path, shown: str) -> os.stat_result:
    """Return what the system says of a regular file.

    Raises:
        ToolError: There is none (PATH_NOT_FOUND), or it is a directory, a pipe or a device
            (NOT_A_FILE).
    """
    with reported(shown):
        status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("NOT_A_FILE", f"{shown!r} is {_kind(status.st_mode)}")
    return status


def directory(given: Mapping[str, Any], context: ToolContext) -> Path:
    """Return the directory that a search starts in.

    Raises:
        ToolError: There is none (PATH_NOT_FOUND), or it is a file (NOT_A_DIRECTORY).
    """
    root = context.policy.resolve(given.get("path", "."), access="read")
    shown = context.policy.display(root)
    with reported(shown):
        root.stat()
    if not root.is_dir():
        raise ToolError("NOT_A_DIRECTORY", f"{shown!r} is a file")
    return root


def read_text(path: Path, shown: str) -> str:
    """Return a file's text, byte for byte: line ends stay what they are.

    Raises:
        ToolError: As `check_file`, or it is too large or no UTF-8 (NOT_TEXT).
    """
    size = check_file(path, shown).st_size
    if size > TEXT_LIMIT:
        raise ToolError(
            "NOT_TEXT", f"{shown!r} has {size} bytes, more than the {TEXT_LIMIT} allowed"
        )
    with reported(shown):
        data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError("NOT_TEXT", f"{shown!r} is not UTF-8 text") from None


def replace_file(path: Path, text: str, shown: str) -> None:
    """Write a whole file: readers and a full disk see the old content or the new.

    Missing parent directories are made; the mode of a file that was there stays.

    Raises:
        ToolError: The text has no UTF-8 form (VALIDATION_ERROR), or the system says no.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(
            "VALIDATION_ERROR", "the text holds half a surrogate pair, which no file can"
        ) from None
    with reported(shown):
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        _swap_in(path, data, mode=mode)


@contextmanager
def reported(shown: str) -> Iterator[None]:
    """Say what the operating system refused in words that name the model's own path."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError("PATH_NOT_FOUND", f"there is no {shown!r}") from None
    except (NotADirectoryError, FileExistsError):
        raise ToolError(
            "NOT_A_DIRECTORY", f"a parent of {shown!r} is a file, not a directory"
        ) from None
    except OSError as error:
        raise ToolError("EXECUTION_ERROR", f"{shown!r}: {error.strerror}") from None


def _swap_in(path: Path, data: bytes, *, mode: int | None) -> None:
    fresh = path.parent / f".acp-example-{os.getpid()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(fresh, flags, 0o666), "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe, a socket or a device"
