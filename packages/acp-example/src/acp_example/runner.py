"""Doing what a turn asks for: the one place where streams, tools and waits really run."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from acp_example.batch import error_result
from acp_example.clock import Clock
from acp_example.effects import (
    Ask,
    CallModel,
    Done,
    Effect,
    Outcome,
    Record,
    Sleep,
    StartTool,
    StopModel,
    StopSleep,
    StopTool,
    Tell,
)
from acp_example.llm import Llm, ModelRequest
from acp_example.loop import Turn
from acp_example.permissions import Answer
from acp_example.tools import CallInfo, FatalToolError, ToolContext, ToolError, ToolResult
from llm_replay.exceptions import ReplayError

_T = TypeVar("_T")
_ABORTED: Final = "the turn was cancelled while this call ran"


class Client(Protocol):
    """Whoever watches a session."""

    def update(self, update: Mapping[str, Any]) -> None:
        """Take an update; they arrive in the order of these calls."""
        ...

    async def flush(self) -> None:
        """Wait until all updates so far are delivered."""
        ...

    async def ask(self, request: Mapping[str, Any]) -> Answer:
        """Ask whether a call may run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a runner works with."""

    llm: Llm
    clock: Clock
    client: Client
    write: Callable[[Mapping[str, Any]], None]
    """Write an event to the session's log, flushed."""
    context: Callable[[CallInfo], ToolContext]
    """Say what a running call may use."""
    permission_timeout_s: float | None = None


class Runner:
    """Runs one turn. No task of it outlives `run`."""

    def __init__(self, turn: Turn, world: World) -> None:
        self._turn = turn
        self._world = world
        self._done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._model: asyncio.Task[None] | None = None
        self._sleep: asyncio.Task[None] | None = None
        self._calls: dict[int, asyncio.Task[Any]] = {}
        self._stopped: set[int] = set()

    async def run(self, message: Mapping[str, Any]) -> Outcome:
        """Run the turn to its end. Cancelling this cancels the turn, which still ends in order."""
        self._perform(self._turn.begin(message))
        try:
            outcome = await asyncio.shield(self._done)
        except asyncio.CancelledError:
            self.cancel("parent")
            raise
        finally:
            await self._settled()
        await self._world.client.flush()
        return outcome

    def cancel(self, by: str = "user") -> None:
        """Stop what is under way; harmless at any time, and the second time."""
        self._perform(self._turn.cancel(by))

    async def _settled(self) -> None:
        """Wait until nothing of the turn runs any more, the callbacks of its tasks included."""
        while self._tasks:
            await asyncio.wait(self._tasks)
            await asyncio.sleep(0)

    def _perform(self, effects: list[Effect]) -> None:
        """Carry out effects in order. None of them waits, so no two turns of events mix."""
        try:
            for effect in effects:
                self._carry_out(effect)
        except Exception as error:  # noqa: BLE001  a log that can't be written ends the turn, loudly
            self._fail(error)

    def _carry_out(self, effect: Effect) -> None:  # noqa: C901  one line per effect
        match effect:
            case Record(event):
                self._world.write(event)
            case Tell(update):
                self._world.client.update(update)
            case CallModel(request):
                self._model = self._spawn(self._stream(request), self._stream_ended)
            case StartTool(k):
                self._calls[k] = self._spawn(self._body(effect), partial(self._body_ended, effect))
            case Ask(k, request):
                self._calls[k] = self._spawn(self._ask(request), partial(self._ask_ended, k))
            case StopTool(k):
                self._stopped.add(k)
                self._calls[k].cancel()
            case StopModel():
                _stop(self._model)
            case Sleep(delay_ms):
                self._sleep = self._spawn(
                    self._world.clock.sleep(delay_ms / 1000), self._sleep_ended
                )
            case StopSleep():
                _stop(self._sleep)
            case Done(outcome):
                self._done.set_result(outcome)

    def _spawn(
        self, work: Coroutine[Any, Any, _T], ended: Callable[[asyncio.Task[_T]], None]
    ) -> asyncio.Task[_T]:
        """Start work. Its end is told by a callback, so even work cancelled unstarted has one."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

        def finish(task: asyncio.Task[_T]) -> None:
            self._tasks.discard(task)
            if not self._done.done():
                ended(task)
            elif not task.cancelled():
                task.exception()  # Seen: the turn has ended by another one.

        task.add_done_callback(finish)
        return task

    def _fail(self, error: BaseException) -> None:
        """End the turn with an error that it cannot log: nothing else may go on."""
        if not self._done.done():
            self._done.set_exception(error)
        for task in self._tasks:
            task.cancel()

    async def _stream(self, request: ModelRequest) -> None:
        """Hand over a stream chunk by chunk, each done with before the next is asked for."""
        async with aclosing(self._world.llm.stream(request)) as chunks:
            async for chunk in chunks:
                self._perform(self._turn.model_chunk(chunk))
                await self._world.client.flush()

    def _stream_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        self._perform(self._turn.model_ended(error))

    def _sleep_ended(self, _task: asyncio.Task[None]) -> None:
        self._perform(self._turn.waited())

    async def _ask(self, request: Mapping[str, Any]) -> Answer:
        limit = self._world.permission_timeout_s
        return await self._in_time(self._world.client.ask(request), limit) or "timeout"

    def _ask_ended(self, k: int, task: asyncio.Task[Answer]) -> None:
        if not task.cancelled():
            self._perform(self._turn.permission(k, task.result()))

    async def _body(self, call: StartTool) -> ToolResult:
        context = self._world.context(call.info)
        limit = call.tool.spec.timeout_s
        result = await self._in_time(call.tool.run(call.arguments, context), limit)
        if result is None:
            raise ToolError("TIMEOUT", f"{call.tool.spec.name!r} took longer than {limit:g} s")
        return result

    def _body_ended(self, call: StartTool, task: asyncio.Task[ToolResult]) -> None:
        """Take in a body's end. This is the one place where its failure becomes a result."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ReplayError):
            result = error_result("ABORTED", "a fault of the recording ended this call")
            self._perform(self._turn.tool_faulted(call.k, result, error))
            return
        fatal = isinstance(error, FatalToolError)
        if task.cancelled():
            result = error_result("ABORTED", _ABORTED)
        elif isinstance(error, ToolError):
            result = error_result(error.code, error.message)
        elif error is not None:
            text = f"{call.tool.spec.name!r} failed: {type(error).__name__}: {error}"
            result = error_result("EXECUTION_ERROR", text)
        else:
            result = task.result()
            if call.k in self._stopped:
                # A cancelled body may give back what it has so far.
                result = replace(result, is_error=True, code="ABORTED", notice=_ABORTED)
        self._perform(self._turn.tool_finished(call.k, result, fatal=fatal))

    async def _in_time(self, work: Coroutine[Any, Any, _T], limit: float | None) -> _T | None:
        """Await work for at most so long, by the turn's own clock; None if it took longer."""
        if limit is None:
            return await work
        task = asyncio.ensure_future(work)
        timer = asyncio.ensure_future(self._world.clock.sleep(limit))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        except asyncio.CancelledError:
            task.cancel()
            return await task
        finally:
            await _put_down(task, timer)


def _stop(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()


async def _put_down(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs and wait for its clean-up."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
