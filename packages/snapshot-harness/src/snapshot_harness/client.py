"""What the client serves to the agent for real: files and terminals inside the run's cwd."""

import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from snapshot_harness.frames import encode
from snapshot_harness.permissions import refuse, respond
from snapshot_harness.terminal import Terminal

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002


class Sink(Protocol):
    """Where responses go."""

    def send(self, data: bytes, *, counted: bool) -> None:
        """Have bytes written to the agent's stdin."""
        ...


class ClientRefusal(Exception):  # noqa: N818  an answer to the agent, not an error of ours
    """The request can't be served; the agent is told why."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass
class Client:
    """Serve `fs/*` and `terminal/*` below one directory."""

    cwd: Path
    env: Mapping[str, str]
    _terminals: dict[str, Terminal] = field(default_factory=dict)
    _made: int = 0

    def serve(self, request: dict[str, Any], sink: Sink) -> None:
        """Answer a request, at once or when its command has ended."""
        method = str(request["method"])
        params = request.get("params")
        params = params if isinstance(params, dict) else {}
        try:
            if method == "terminal/wait_for_exit":
                self._terminal(params).when_done(
                    lambda status: sink.send(encode(respond(request, status)), counted=False)
                )
                return
            response = respond(request, _HANDLERS[method](self, params))
        except ClientRefusal as refusal:
            response = refuse(request, refusal.code, str(refusal))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            response = refuse(request, INVALID_PARAMS, f"params are not as ACP says: {error!r}")
        sink.send(encode(response), counted=False)

    def end(self) -> None:
        """Kill every terminal that still runs."""
        for terminal in self._terminals.values():
            terminal.end()
        self._terminals.clear()

    def _read(self, params: dict[str, Any]) -> object:
        path = self._inside(params, "path")
        line, limit = _count(params, "line"), _count(params, "limit")
        try:
            with _opened(path, os.O_RDONLY) as file:
                text = file.read().decode("utf-8")
        except FileNotFoundError:
            raise ClientRefusal(NOT_FOUND, f"Resource not found: {params['path']}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ClientRefusal(INTERNAL_ERROR, f"can't read: {error}") from None
        if line is None and limit is None:
            return {"content": text}
        start = max(0, (1 if line is None else line) - 1)
        lines = list(io.StringIO(text))  # cut at LF alone, and nothing is translated
        return {"content": "".join(lines[start : None if limit is None else start + limit])}

    def _write(self, params: dict[str, Any]) -> object:
        path = self._inside(params, "path")
        content = params.get("content")
        if not isinstance(content, str):
            raise ClientRefusal(INVALID_PARAMS, "content must be a string")
        data = content.encode("utf-8")
        try:
            _make_parents(path)
            is_new = not path.exists()
            with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                file.write(data)
                if is_new:  # whatever the umask of whoever runs the tests
                    os.fchmod(file.fileno(), 0o644)
        except OSError as error:
            raise ClientRefusal(INTERNAL_ERROR, f"can't write: {error}") from None
        return {}

    def _create(self, params: dict[str, Any]) -> object:
        where = self._inside(params, "cwd") if params.get("cwd") else self.cwd
        extra = {entry["name"]: entry["value"] for entry in params.get("env") or []}
        args = params.get("args") or []
        argv = [params.get("command"), *args]
        if not isinstance(args, list) or not all(isinstance(part, str) for part in argv):
            raise ClientRefusal(INVALID_PARAMS, "command and args must be strings")
        limit = _count(params, "outputByteLimit")
        try:
            terminal = Terminal(argv, cwd=where, env={**self.env, **extra}, limit=limit)
        except OSError as error:
            raise ClientRefusal(INTERNAL_ERROR, f"can't start: {error.strerror}") from None
        self._made += 1
        name = f"terminal-{self._made}"
        self._terminals[name] = terminal
        return {"terminalId": name}

    def _output(self, params: dict[str, Any]) -> object:
        return self._terminal(params).output()

    def _kill(self, params: dict[str, Any]) -> object:
        self._terminal(params).kill()
        return {}

    def _release(self, params: dict[str, Any]) -> object:
        self._terminal(params).end()
        del self._terminals[params["terminalId"]]
        return {}

    def _terminal(self, params: dict[str, Any]) -> Terminal:
        name = params.get("terminalId")
        if not isinstance(name, str) or name not in self._terminals:
            raise ClientRefusal(NOT_FOUND, f"no terminal {name!r}")
        return self._terminals[name]

    def _inside(self, params: dict[str, Any], key: str) -> Path:
        """Return a path that lies inside the cwd, links followed."""
        text = params.get(key)
        if not isinstance(text, str) or not text.startswith("/"):
            raise ClientRefusal(INVALID_PARAMS, f"{key} must be an absolute path")
        path = Path(os.path.realpath(text))
        if not path.is_relative_to(self.cwd):
            raise ClientRefusal(INVALID_PARAMS, f"{key} is outside the workspace")
        return path


def _count(params: dict[str, Any], key: str) -> int | None:
    """Return a number that may be left out."""
    value = params.get(key)
    if value is not None and (type(value) is not int or value < 0):
        raise ClientRefusal(INVALID_PARAMS, f"{key} must be a number, not below 0")
    return value


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[io.FileIO]:
    """Open a regular file; of a pipe the other end might never come."""
    number = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is no regular file")
    with io.FileIO(number, "r" if flags == os.O_RDONLY else "w") as file:
        yield file


def _make_parents(path: Path) -> None:
    """Make the directories above a file, whatever the umask of whoever runs the tests."""
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(exist_ok=True)
            parent.chmod(0o755)


_HANDLERS: Mapping[str, Callable[[Client, dict[str, Any]], object]] = {
    "fs/read_text_file": Client._read,  # noqa: SLF001  its own methods
    "fs/write_text_file": Client._write,  # noqa: SLF001
    "terminal/create": Client._create,  # noqa: SLF001
    "terminal/output": Client._output,  # noqa: SLF001
    "terminal/kill": Client._kill,  # noqa: SLF001
    "terminal/release": Client._release,  # noqa: SLF001
}
