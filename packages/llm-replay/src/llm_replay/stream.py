"""The stream of one call: its chunks, then its end, its throw or its hang."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from llm_replay.chunks import PARTIAL, Chunk
from llm_replay.cursors import Cursor
from llm_replay.exceptions import OverrideError, Problem, RecordedFailureError, ReplayError
from llm_replay.verdict import VerdictWriter

BURST = 64
"""How many chunks are served before everybody else gets a turn."""


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class ServedCall:
    """One call that was asked for, on its way to its consumer.

    `prepare` returns the entry as it is served. `pause` tells, where replay is paced, how many
    seconds to wait before the chunk at a position.
    """

    cursor: Cursor
    call: int
    verdict: VerdictWriter
    prepare: Callable[[], Awaitable[dict[str, Any]]]
    pause: Callable[[int], float] | None
    on_fault: Callable[[ReplayError, int, int], None]
    started: bool = False
    told: bool = False

    def served(self) -> None:
        """Tell, once, that nothing of this call is left to be served."""
        if not self.told:
            self.told = True
            self.verdict.served(self.cursor.track.index, self.call)

    async def stream(self) -> AsyncGenerator[Chunk, None]:
        """Serve the entry; a fault is told before it is raised, a cancellation passes through."""
        with self._telling(), self.cursor.reading(self.call):
            entry = await self.prepare()
            chunks = entry.get("chunks", PARTIAL)
            last = len(chunks) - 1 if entry["kind"] == "chunks" else None
            for start, end in self._bursts(len(chunks)):
                await asyncio.sleep(self.pause(start) if self.pause else 0)
                if start == last:
                    self.served()
                cancelling = _cancelling()
                for chunk in chunks[start:end]:
                    if cancelling():  # a cancellation lands at the next await: here it is
                        await asyncio.sleep(0)
                    yield chunk
            await self._end(entry)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell how the stream ended, however that was."""
        self.started = True
        try:
            yield
        except ReplayError as fault:
            self.told = True  # a fault is told instead: this was no service
            self.on_fault(fault, self.cursor.track.index, self.call)
            raise
        finally:
            self.served()

    def _bursts(self, length: int) -> Iterable[tuple[int, int]]:
        """Cut the chunks where others get a turn; the last chunk is always a piece of its own."""
        if self.pause is not None:
            return pairwise(range(length + 1))
        return pairwise([*range(0, length - 1, BURST), *range(max(length - 1, 0), length + 1)])

    async def _end(self, entry: dict[str, Any]) -> None:
        match entry["kind"]:
            case "throw":
                raise RecordedFailureError(message=entry["message"], code=entry["code"])
            case "hang":
                # Made before the hang is told, so that a call that can't hang isn't told to; seen
                # after it, since who waits for the file may kill this process.
                show = _ready_file(entry["readyFile"]) if "readyFile" in entry else None
                self.verdict.hanging(self.cursor.track.index, self.call)
                if show is not None:
                    show()
                await asyncio.get_running_loop().create_future()
            case _:
                await asyncio.sleep(0)


async def failing(error: ReplayError) -> AsyncGenerator[Chunk, None]:
    """Return a stream that raises `error` when it is read."""
    yield _raise(error)


def _raise(error: ReplayError) -> Chunk:
    raise error


def _cancelling() -> Callable[[], int]:
    task = asyncio.current_task()
    return task.cancelling if task is not None else int


def _ready_file(file: str) -> Callable[[], None]:
    """Make a file under another name; return what gives it its own. One that is there stays."""
    path = Path(file)
    with _creating(file):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.stat()
        except FileNotFoundError:
            made = path.with_name(f".{secrets.token_hex(8)}")
            made.touch(exist_ok=False)
        else:
            path.touch()
            return lambda: None

    def show() -> None:
        with _creating(file):
            made.rename(path)

    return show


@contextlib.contextmanager
def _creating(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        problem = Problem("readyFile", f"can't be created: {why}")
        raise OverrideError(where=file, problems=[problem]) from None
