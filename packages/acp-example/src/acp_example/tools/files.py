"""Reading and replacing files on behalf of a tool, with the errors a model can act on."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from acp_example.exceptions import ToolError
from acp_example.nofollow import folder_of, open_real, status, status_of
from acp_example.tools import ToolContext

TEXT_LIMIT: Final = 16 * 1024 * 1024


@contextmanager
def opened(path: Path, shown: str) -> Iterator[BinaryIO]:
    """Open a regular file to be read; what fails while it is read is reported as well.

    Raises:
        ToolError: There is none (PATH_NOT_FOUND), or it is a directory, a pipe or a device
            (NOT_A_FILE).
    """
    with reported(shown):
        _check_kind(status_of(str(path)), shown)
        # Should a pipe have come in its place, nobody waits for its other end.
        descriptor = open_real(str(path), os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123  a descriptor, not a path
            _check_kind(os.fstat(descriptor), shown)
            yield file


def size_of(file: BinaryIO) -> int:
    """Return how many bytes an open file has."""
    return os.fstat(file.fileno()).st_size


def directory(given: Mapping[str, Any], context: ToolContext) -> Path:
    """Return the directory that a search starts in.

    Raises:
        ToolError: There is none (PATH_NOT_FOUND), or it is a file (NOT_A_DIRECTORY).
    """
    root = context.policy.resolve(given.get("path", "."), access="read")
    shown = context.policy.display(root)
    with reported(shown):
        mode = status_of(str(root)).st_mode
    if not stat.S_ISDIR(mode):
        raise ToolError("NOT_A_DIRECTORY", f"{shown!r} is a file")
    return root


def read_text(path: Path, shown: str) -> str:
    """Return a file's text, byte for byte: line ends stay what they are.

    Raises:
        ToolError: As `opened`, or it is too large or no UTF-8 (NOT_TEXT).
    """
    with opened(path, shown) as file:
        size = size_of(file)
        if size > TEXT_LIMIT:
            raise ToolError(
                "NOT_TEXT", f"{shown!r} has {size} bytes, more than the {TEXT_LIMIT} allowed"
            )
        data = file.read()
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
    with reported(shown), folder_of(str(path), make=True) as (folder, name):
        _swap_in(name, data, folder)


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


def _swap_in(name: str, data: bytes, folder: int) -> None:
    mode = None
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(status(name, folder).st_mode)
    fresh = f".acp-example-{os.getpid()}.new"
    with suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(fresh, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        raise


def _check_kind(found: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ToolError("NOT_A_FILE", f"{shown!r} is {_kind(found.st_mode)}")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe, a socket or a device"
