"""What the client serves to the agent for real: files and terminals inside the run's cwd."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from snapshot_harness.frames import encode
from snapshot_harness.leftovers import signal_group
from snapshot_harness.permissions import refuse, respond
from snapshot_harness.watchdog import WATCHDOG

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
    _terminals: dict[str, "Terminal"] = field(default_factory=dict)
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
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            raise ClientRefusal(NOT_FOUND, f"Resource not found: {params['path']}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ClientRefusal(INTERNAL_ERROR, f"can't read: {error}") from None
        line, limit = params.get("line"), params.get("limit")
        if line is None and limit is None:
            return {"content": text}
        start = max(0, (1 if line is None else line) - 1)
        lines = text.splitlines(keepends=True)
        return {"content": "".join(lines[start : None if limit is None else start + limit])}

    def _write(self, params: dict[str, Any]) -> object:
        path = self._inside(params, "path")
        content = params.get("content")
        if not isinstance(content, str):
            raise ClientRefusal(INVALID_PARAMS, "content must be a string")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        except OSError as error:
            raise ClientRefusal(INTERNAL_ERROR, f"can't write: {error}") from None
        return {}

    def _create(self, params: dict[str, Any]) -> object:
        where = self._inside(params, "cwd") if params.get("cwd") else self.cwd
        extra = {entry["name"]: entry["value"] for entry in params.get("env") or []}
        argv = [str(params.get("command")), *(params.get("args") or [])]
        limit = params.get("outputByteLimit")
        if limit is not None and (type(limit) is not int or limit < 0):
            raise ClientRefusal(INVALID_PARAMS, "outputByteLimit must be a number of bytes")
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

    def _terminal(self, params: dict[str, Any]) -> "Terminal":
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


_HANDLERS: Mapping[str, Callable[[Client, dict[str, Any]], object]] = {
    "fs/read_text_file": Client._read,  # noqa: SLF001  its own methods
    "fs/write_text_file": Client._write,  # noqa: SLF001
    "terminal/create": Client._create,  # noqa: SLF001
    "terminal/output": Client._output,  # noqa: SLF001
    "terminal/kill": Client._kill,  # noqa: SLF001
    "terminal/release": Client._release,  # noqa: SLF001
}


class Terminal:
    """A command in a group of its own, its output kept up to a limit."""

    def __init__(
        self, argv: list[str], *, cwd: Path, env: Mapping[str, str], limit: int | None
    ) -> None:
        self._limit = limit
        self._output = bytearray()
        self._truncated = False
        self._lock = threading.Lock()
        self._waiting: list[Callable[[object], None]] = []
        self._status: dict[str, object] | None = None
        self._popen = subprocess.Popen(  # noqa: S603  what the agent asks for, as granted
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
        WATCHDOG.add_group(self._popen.pid)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def output(self) -> dict[str, object]:
        """Return what was written so far, and the exit status once there is one."""
        with self._lock:
            text = bytes(self._output).decode("utf-8", "ignore")
            told: dict[str, object] = {"output": text, "truncated": self._truncated}
            return told if self._status is None else {**told, "exitStatus": self._status}

    def when_done(self, tell: Callable[[object], None]) -> None:
        """Tell the exit status, now or later."""
        with self._lock:
            if self._status is None:
                self._waiting.append(tell)
                return
        tell(self._status)

    def kill(self) -> None:
        """Kill the command; its output stays."""
        signal_group(self._popen.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the command and forget it."""
        with self._lock:
            self._waiting.clear()
        self.kill()
        self._thread.join()
        WATCHDOG.drop_group(self._popen.pid)

    def _read(self) -> None:
        pipe = self._popen.stdout
        if pipe is not None:
            while data := os.read(pipe.fileno(), 65536):
                with self._lock:
                    self._output += data
                    if self._limit is not None and len(self._output) > self._limit:
                        # From the front, as ACP says: the end is what one wants to see.
                        del self._output[: len(self._output) - self._limit]
                        self._truncated = True
            with contextlib.suppress(OSError):
                pipe.close()
        code = self._popen.wait()
        status: dict[str, object] = {"exitCode": code, "signal": None}
        if code < 0:
            status = {"exitCode": None, "signal": signal.Signals(-code).name}
        with self._lock:
            self._status = status
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell(status)
