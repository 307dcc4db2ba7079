"""Doing what a turn asks for: the one place where streams, tools and waits really run."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
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
_Ended = Callable[[asyncio.Future[Any]], None]
GRACE_S: Final = 5.0
"""How long cancelled work may take to clean up before nobody waits for it any more."""
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
        self._tasks: dict[asyncio.Task[Any], _Ended] = {}
        self._graces: set[asyncio.Task[None]] = set()
        self._model: asyncio.Task[None] | None = None
        self._sleep: asyncio.Task[None] | None = None
        self._calls: dict[int, asyncio.Task[Any]] = {}
        self._stopped: set[int] = set()

    async def run(self, message: Mapping[str, Any]) -> Outcome:
        """Run the turn to its end. Cancelling this cancels the turn, which still ends in order."""
        self._tell(self._turn.begin, message)
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
        self._tell(self._turn.cancel, by)

    async def _settled(self) -> None:
        """Wait until nothing of the turn runs any more, the callbacks of its tasks included."""
        while self._tasks:
            graces = asyncio.FIRST_COMPLETED if self._graces else asyncio.ALL_COMPLETED
            await asyncio.wait({*self._tasks, *self._graces}, return_when=graces)
            await asyncio.sleep(0)
        await put_down(self._graces, self._world.clock)

    def _tell(self, happened: Callable[..., list[Effect]], *facts: object, **more: object) -> None:
        """Tell the turn what happened, and do what it says, in order.

        None of it waits, so no two events mix. An error here (the log can't be written) can't be
        logged either: it ends the turn, loudly.
        """
        try:
            for effect in happened(*facts, **more):
                self._carry_out(effect)
        except Exception as error:  # noqa: BLE001  whatever it is, whoever awaits the turn gets it
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
                if not self._calls[k].done():
                    self._stopped.add(k)
                self._stop(self._calls[k])
            case StopModel():
                self._stop(self._model)
            case Sleep(delay_ms):
                self._sleep = self._spawn(
                    self._world.clock.sleep(delay_ms / 1000), self._sleep_ended
                )
            case StopSleep():
                self._stop(self._sleep)
            case Done(outcome):
                self._done.set_result(outcome)

    def _spawn(
        self, work: Coroutine[Any, Any, _T], ended: Callable[[asyncio.Future[_T]], None]
    ) -> asyncio.Task[_T]:
        """Start work. Its end is told by a callback, so even work cancelled unstarted has one."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = ended
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[Any]) -> None:
        ended = self._tasks.pop(task, None)
        if ended is not None and not self._done.done():
            ended(task)
        elif not task.cancelled():
            task.exception()  # Seen: the turn has ended by another one, or given this one up.

    def _stop(self, task: asyncio.Task[Any] | None) -> None:
        """Cancel work, and give it up where it does not end within its grace."""
        if task is None or task.done():
            return
        task.cancel()
        grace = asyncio.get_running_loop().create_task(self._give_up(task))
        self._graces.add(grace)
        grace.add_done_callback(self._graces.discard)

    async def _give_up(self, task: asyncio.Task[Any]) -> None:
        await self._world.clock.sleep(GRACE_S)
        ended = self._tasks.pop(task, None)
        if ended is not None and not self._done.done():
            stub = asyncio.get_running_loop().create_future()
            stub.cancel()
            ended(stub)

    def _fail(self, error: BaseException) -> None:
        """End the turn with an error that it cannot log: nothing else may go on."""
        if not self._done.done():
            self._done.set_exception(error)
        for task in list(self._tasks):
            self._stop(task)

    async def _stream(self, request: ModelRequest) -> None:
        """Hand over a stream chunk by chunk, each done with before the next is asked for."""
        async with aclosing(self._world.llm.stream(request)) as chunks:
            async for chunk in chunks:
                self._tell(self._turn.model_chunk, chunk)
                await self._world.client.flush()

    def _stream_ended(self, task: asyncio.Future[None]) -> None:
        error = None if task.cancelled() else task.exception()
        self._tell(self._turn.model_ended, error)

    def _sleep_ended(self, _task: asyncio.Future[None]) -> None:
        self._tell(self._turn.waited)

    async def _ask(self, request: Mapping[str, Any]) -> Answer:
        limit = self._world.permission_timeout_s
        return await self._in_time(self._world.client.ask(request), limit) or "timeout"

    def _ask_ended(self, k: int, task: asyncio.Future[Answer]) -> None:
        if not task.cancelled():
            # A client that fails at this can't be asked.
            answer = "unavailable" if task.exception() else task.result()
            self._tell(self._turn.permission, k, answer)

    async def _body(self, call: StartTool) -> ToolResult:
        context = self._world.context(call.info)
        limit = call.tool.spec.timeout_s
        result = await self._in_time(call.tool.run(call.arguments, context), limit)
        if result is None:
            raise ToolError("TIMEOUT", f"{call.tool.spec.name!r} took longer than {limit:g} s")
        return result

    def _body_ended(self, call: StartTool, task: asyncio.Future[ToolResult]) -> None:
        """Take in a body's end. This is the one place where its failure becomes a result."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ReplayError):
            result = error_result("ABORTED", "a fault of the recording ended this call")
            self._tell(self._turn.tool_faulted, call.k, result, error)
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
        self._tell(self._turn.tool_finished, call.k, result, fatal=fatal)

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
            await put_down({task, timer}, self._world.clock)


async def put_down(tasks: Iterable[asyncio.Future[Any]], clock: Clock) -> None:
    """Cancel what still runs and wait for its clean-up, but not for ever."""
    pending = {task for task in tasks if not task.done()}
    for task in pending:
        task.cancel()
    if pending:
        grace = asyncio.ensure_future(clock.sleep(GRACE_S))
        while pending and not grace.done():
            await asyncio.wait({*pending, grace}, return_when=asyncio.FIRST_COMPLETED)
            pending = {task for task in pending if not task.done()}
        grace.cancel()
