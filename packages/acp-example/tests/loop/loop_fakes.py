"""Stand-ins for the world around a loop: time, tools, commands, a client."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from acp_example.permissions import Answer
from acp_example.tools import Execution, ToolContext, ToolResult, ToolSpec
from llm_replay.scripted_model import call

Json: TypeAlias = Any
"""Whatever a script, a schema or a frame may hold."""
Body = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult | str]]
Reply = Answer | Callable[[], Awaitable[Answer]]

ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}


class VirtualClock:
    """Time that passes only when a test says so; with `auto`, every wait is over at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.auto = False
        self.waits: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        """Return the virtual time."""
        return int(self.now * 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait for the time to pass."""
        self.waits.append(seconds)
        if self.auto:
            self.now += seconds
            return
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, sleeper))
        await sleeper

    async def advance(self, seconds: float) -> None:
        """Let time pass, and whoever waited for it go on."""
        self.now += seconds
        for due, sleeper in self._sleepers:
            if due <= self.now and not sleeper.done():
                sleeper.set_result(None)
        await settle()


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(50):
        await asyncio.sleep(0)


class FakeTool:
    """A tool whose body a test writes."""

    def __init__(
        self,
        name: str,
        body: Body | ToolResult | BaseException | str = "done",
        **spec: Any,  # noqa: ANN401  fields of the contract
    ) -> None:
        facts: dict[str, Any] = {
            "description": f"The tool {name}.",
            "schema": ANY_OBJECT,
            "kind": "other",
            "mode": "parallel",
            "path_policy": "none",
            "timeout_s": None,
            "annotations": {},
            "title": lambda _given: f"Run {name}",
        }
        self.spec = ToolSpec(name=name, **{**facts, **spec})
        self.body = body
        self.started: list[Mapping[str, Any]] = []
        self.ended = 0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Do what the test says."""
        self.started.append(arguments)
        try:
            return await self._run(arguments, context)
        finally:
            self.ended += 1

    async def _run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        body = self.body
        if isinstance(body, BaseException):
            raise body
        if callable(body):
            body = await body(arguments, context)
        return body if isinstance(body, ToolResult) else ToolResult(text=body)


class FakeExecutor:
    """Answers every command with what a test says."""

    def __init__(self, execution: Execution | None = None) -> None:
        self.execution = execution or Execution(exit_code=0, stdout="out\n", stderr="")
        self.commands: list[str] = []

    async def run(self, command: str, **_: object) -> Execution:
        """Return the scripted execution."""
        self.commands.append(command)
        return self.execution


class FakeClient:
    """A client that keeps what it is told and answers as scripted, by call or in order."""

    def __init__(self) -> None:
        self.updates: list[Mapping[str, Any]] = []
        self.asked: list[Mapping[str, Any]] = []
        self.answers: dict[str, Reply] = {}
        self.queue: deque[Reply] = deque()
        self.watch: Callable[[Mapping[str, Any]], None] = lambda _update: None

    def update(self, update: Mapping[str, Any]) -> None:
        """Keep an update."""
        self.updates.append(update)
        self.watch(update)

    async def flush(self) -> None:
        """Let others run, as a slow pipe would."""
        await asyncio.sleep(0)

    async def ask(self, request: Mapping[str, Any]) -> Answer:
        """Answer as scripted; without a script there is nobody to ask."""
        self.asked.append(request)
        call = request["toolCall"]["toolCallId"]
        reply = self.answers.get(call) or (self.queue.popleft() if self.queue else "unavailable")
        return reply if isinstance(reply, str) else await reply()

    def kinds(self) -> list[str]:
        """Return the kind of each update, calls with their id and status."""
        return [_kind(update) for update in self.updates]

    def text(self, kind: str = "agent_message_chunk") -> list[str]:
        """Return the texts of the chunks of a kind."""
        chosen = [update for update in self.updates if update["sessionUpdate"] == kind]
        return [update["content"]["text"] for update in chosen]

    def statuses(self, call: str) -> list[str]:
        """Return the statuses that a call went through."""
        return [u["status"] for u in self.updates if u.get("toolCallId") == call]


def _kind(update: Mapping[str, Any]) -> str:
    kind = str(update["sessionUpdate"])
    return f"{update['toolCallId']} {update['status']}" if kind.startswith("tool_call") else kind


class Gates:
    """A tool whose calls wait at a gate each, named by their argument."""

    def __init__(self, name: str = "gate", **spec: Json) -> None:
        self.tool = FakeTool(name, self._body, **spec)
        self._gates: dict[str, asyncio.Event] = {}

    def __getitem__(self, which: str) -> asyncio.Event:
        return self._gates.setdefault(which, asyncio.Event())

    async def _body(self, given: Mapping[str, Any], _context: ToolContext) -> str:
        await self[given["gate"]].wait()
        return f"through {given['gate']}"

    @property
    def started(self) -> list[str]:
        """The gates that calls came to, in order."""
        return [given["gate"] for given in self.tool.started]


def gate(which: str, name: str = "gate") -> Json:
    return call(f"call-{which}", name, {"gate": which})
