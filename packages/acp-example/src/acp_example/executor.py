"""The command executor plugin: a fresh shell per command, in a process group of its own."""

import asyncio
import os
import shutil
import signal
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from pydantic import BaseModel, ConfigDict, Field

from acp_example.bounds import Limit, cut_middle
from acp_example.exceptions import ToolError
from acp_example.plugins import Context
from acp_example.tools import Execution

__all__ = ["Capture", "Config", "ShellExecutor", "apply", "child_environment", "inject", "name"]

name = "executor"
inject = ()

_PASSED_ON: Final = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "DSH_SNAPSHOT_RUN",  # by it, the snapshot harness finds processes that left their group
)


class Config(BaseModel):
    """How commands run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shell: str = "bash"
    env: tuple[str, ...] = ()
    """Further variables that commands get from the agent's environment."""
    kept_bytes: int = Field(default=4 * 1024 * 1024, ge=2)
    """How much of each output stream is kept: the start and the end, half each."""
    grace_s: float = Field(default=0.2, ge=0)
    """How long, once the shell has ended, what it left running may still write."""


def apply(context: Context, config: Config) -> None:
    """Offer the executor as a service; another plugin may offer one of its own instead."""
    context.provide("executor", ShellExecutor(config))


def child_environment(
    environment: Mapping[str, str], further: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return what a command may know of the agent's environment: names on a list, nothing else."""
    return {key: environment[key] for key in (*_PASSED_ON, *further) if key in environment}


class ShellExecutor:
    """Runs each command in a shell that reads no start-up file and no input."""

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or Config()

    async def run(
        self, command: str, *, cwd: Path, environment: Mapping[str, str], timeout_s: float | None
    ) -> Execution:
        """Run a command to its end; whatever happens, nothing of its group is left.

        Cancelled, it stops the command and still returns what that wrote: the caller knows
        that it was cancelled, and the output is worth keeping.

        Raises:
            ToolError: It ran longer than `timeout_s` (TIMEOUT), or no shell could be started.
        """
        start = asyncio.ensure_future(self._start(command, cwd, environment))
        try:
            running = await asyncio.shield(start)
        except asyncio.CancelledError:
            # Only what has started can be killed whole.
            running = await start
            await running.kill()
            return running.execution()
        try:
            async with asyncio.timeout(timeout_s):
                await running.exited.wait()
            await running.drain(self._config.grace_s)
        except asyncio.CancelledError:
            await running.kill()
        except TimeoutError:
            raise ToolError(
                "TIMEOUT", f"the command was stopped after {timeout_s:g} s{running.so_far()}"
            ) from None
        finally:
            await running.kill()
        return running.execution()

    async def _start(self, command: str, cwd: Path, environment: Mapping[str, str]) -> "_Running":
        allowed = child_environment(environment, self._config.env)
        shell = shutil.which(self._config.shell, path=allowed.get("PATH"))
        if shell is None:
            raise ToolError("EXECUTION_ERROR", f"there is no {self._config.shell!r} in PATH")
        try:
            _, running = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Running(self._config.kept_bytes),
                *(shell, "--noprofile", "--norc", "-c", command),
                stdin=asyncio.subprocess.DEVNULL,
                cwd=str(cwd),
                env=allowed,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolError("EXECUTION_ERROR", f"the shell did not start: {error}") from None
        return running


class _Running(asyncio.SubprocessProtocol):
    """A command under way, and what it wrote so far."""

    def __init__(self, kept_bytes: int) -> None:
        self.exited = asyncio.Event()
        self._silent = asyncio.Event()
        self._open = {1, 2}
        self._output = {1: Capture(kept_bytes), 2: Capture(kept_bytes)}
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._output[fd].feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        self._open.discard(fd)
        if not self._open:
            self._silent.set()

    def process_exited(self) -> None:
        self.exited.set()

    async def drain(self, grace_s: float) -> None:
        """Wait until the pipes close; what the shell left running may hold them open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._silent.wait()

    async def kill(self) -> None:
        """Kill the whole group, close the pipes and wait for the shell's end."""
        with suppress(ProcessLookupError, PermissionError):  # macOS says so of a dead group
            os.killpg(self._transport.get_pid(), signal.SIGKILL)
        # Closing first would reap the shell behind the back of asyncio's own watcher.
        await self.exited.wait()
        self._transport.close()

    def execution(self) -> Execution:
        """Return how the command ended."""
        code = self._transport.get_returncode()
        return Execution(
            exit_code=0 if code is None else code,
            stdout=self._output[1].text(),
            stderr=self._output[2].text(),
            truncated=any(capture.lost for capture in self._output.values()),
        )

    def so_far(self) -> str:
        """Return what the command wrote until now, as the end of an error's text."""
        texts = (capture.text().removesuffix("\n") for capture in self._output.values())
        written = "\n".join(filter(None, texts))
        if not written.strip():
            return ", before it wrote anything"
        limit = Limit()
        if not limit.admits(written):
            written = cut_middle(written, "[the middle is left out]", limit)
        return f"; it wrote\n{written}"


class Capture:
    """Keeps the start and the end of a stream of bytes, in bounded memory."""

    def __init__(self, kept_bytes: int) -> None:
        self._half = kept_bytes // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.lost = 0
        """How many bytes between start and end were dropped."""

    def feed(self, data: bytes) -> None:
        """Take in what the stream gave next."""
        room = self._half - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail_size > self._half:
            self._drop(self._tail_size - self._half)

    def text(self) -> str:
        """Return what was kept; bytes that are no UTF-8 become replacement characters."""
        tail = b"".join(self._tail)
        if not self.lost:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head, end = self._head.decode("utf-8", "ignore"), tail.decode("utf-8", "ignore")
        return f"{head}\n[{self.lost} bytes were not kept]\n{end}"

    def _drop(self, surplus: int) -> None:
        oldest = self._tail.popleft()
        if len(oldest) > surplus:
            self._tail.appendleft(oldest[surplus:])
        dropped = min(surplus, len(oldest))
        self._tail_size -= dropped
        self.lost += dropped
