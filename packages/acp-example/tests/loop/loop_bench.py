"""An agent put together by hand, in one process: scripted model, virtual clock, scripted client."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from acp_example import compaction
from acp_example.composition import Composition
from acp_example.config import AgentTable, LogTable
from acp_example.effects import Outcome
from acp_example.host import Host
from acp_example.live import Session
from acp_example.llm import Llm
from acp_example.log_file import LogWriter
from acp_example.permissions import Answer
from acp_example.session import Conversation
from acp_example.sessions import Sessions
from acp_example.spill import SpillRoot
from acp_example.store import Found, Store
from acp_example.tools import (
    Execution,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
    ToolSpec,
)
from llm_replay.scripted import RecordedRequest, ScriptedModel
from llm_replay.seam import ModelInfo
from llm_replay.session_log import SessionLog, read_session_log

T = TypeVar("T")
Json: TypeAlias = Any
"""Whatever a script, a schema or a frame may hold."""
Make = Callable[..., "Bench"]
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


class MemorySink:
    """Keeps a log's bytes."""

    def __init__(self, data: bytearray) -> None:
        self.data = data

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self.data += data

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True)
class MemoryStore(Store):
    """A store whose logs are in memory: making and removing directories is what tests cost."""

    logs: dict[str, bytearray] = field(default_factory=dict)

    def claim(self) -> str:
        """Take the next lineage."""
        return str(1 + sum("/" not in lineage for lineage in self.logs))

    def create(self, header: Mapping[str, Any]) -> LogWriter:
        """Begin a log."""
        data = self.logs[header["lineage"]] = bytearray()
        writer = LogWriter(MemorySink(data), self.layout)
        writer.write(header)
        return writer

    def all(self) -> Iterator[Found]:
        """Yield every log."""
        for lineage, data in self.logs.items():
            yield Found(Path(lineage), json.loads(bytes(data).split(b"\n")[0]))

    def read(self, found: Found) -> SessionLog:
        """Read a log."""
        return read_session_log(bytes(self.logs[found.header["lineage"]]))

    def append(self, found: Found) -> LogWriter:
        """Go on with a log."""
        return LogWriter(MemorySink(self.logs[found.header["lineage"]]), self.layout)


@dataclass(kw_only=True)
class Bench:
    """One agent and its session, run step by step from a test."""

    root: Callable[[], Path]
    model: ScriptedModel
    tools: Sequence[Tool] = ()
    agent: Mapping[str, Any] = field(default_factory=dict)
    layout: Any = "plain"
    store: Store | None = None
    """Where logs are kept; in memory unless a test is about files."""
    directory: Path = Path("/project")
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: VirtualClock = field(default_factory=VirtualClock)
    client: FakeClient = field(default_factory=FakeClient)
    executor: FakeExecutor = field(default_factory=FakeExecutor)
    random: float = 0.5
    checked: bool = True
    """Whether the logs are checked at the end; not where a test breaks them on purpose."""

    def __post_init__(self) -> None:
        """Compose the agent."""
        self.llm = Llm()
        self.llm.register_provider("scripted", self.model)
        facts = {
            "provider": "scripted",
            "model": "scripted",
            "permission_mode": "full-access",
            **self.agent,
        }
        composition = Composition(
            file=Path("agent.toml"),
            agent=AgentTable(**facts),
            log=LogTable(),
            llm=self.llm,
            tools=ToolRegistry(self.tools),
            executor=self.executor,
            plugins=[],
        )
        self._ids = iter(range(1, 10_000))
        self.host = Host(
            composition=composition,
            store=self.store or MemoryStore(Path("/nowhere"), self.layout),
            spill=SpillRoot(Path("/spill")),
            environment=self.environment,
            clock=self.clock,
            new_id=lambda: f"id-{next(self._ids)}",
            chance=lambda: self.random,
        )
        self.sessions = Sessions(self.host)
        self._loop: asyncio.Runner | None = None
        self._session: Session | None = None

    @property
    def cwd(self) -> Path:
        """A real directory to work in; whoever asks for it has it made."""
        if not self.directory.is_dir():
            self.directory = self.root()
        return self.directory

    @property
    def session(self) -> Session:
        """The session, begun when it is first used."""
        if self._session is None:
            self._session = self.sessions.new(self.directory, lambda _id: self.client)
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        self._session = session

    def prompt(self, text: str = "go") -> Outcome:
        """Run a turn."""
        return self.run(self.turn(text))

    async def turn(self, text: str = "go") -> Outcome:
        """Run a turn inside a test's own coroutine."""
        return await self.session.prompt([{"type": "text", "text": text}])

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and check that it leaves no task behind."""
        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(self._alone(work))

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        result = await work
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks outlive their turn: {left}"
        return result

    def reload(self) -> Session:
        """Open the session anew from its log."""
        session_id = self.session.header["id"]
        self.session.writer.close()
        self.sessions.open.clear()
        self.client.updates.clear()
        self.session = self.sessions.load(session_id, self.directory, lambda _id: self.client)
        return self.session

    def close(self) -> None:
        """Let go of everything."""
        for session in self.sessions.open.values():
            session.writer.close()
        if self._loop is not None:
            self._loop.close()

    def log(self, lineage: str = "1") -> SessionLog:
        """Read a session's log from disk."""
        found = next(log for log in self.host.store.all() if log.header["lineage"] == lineage)
        return self.host.store.read(found)

    def log_bytes(self) -> bytes:
        """Return the main session's log as it was written."""
        store = self.host.store
        assert isinstance(store, MemoryStore)
        return bytes(store.logs["1"])

    @property
    def events(self) -> list[dict[str, Any]]:
        """The session's events."""
        return self.session.conversation.events

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the events of a kind."""
        return [event["data"] for event in self.events if event["type"] == kind]

    @property
    def history(self) -> list[Mapping[str, Any]]:
        """The history as the next request would show it."""
        return self.session.conversation.messages

    def roles(self) -> list[str]:
        """Return what the history is made of, in short."""
        return [_shape(message) for message in self.history]

    def results(self) -> dict[str, str]:
        """Return the text of each call's result, by call id."""
        return {result["toolCallId"]: _text(result) for result in self.result_blocks()}

    def result_blocks(self) -> list[Mapping[str, Any]]:
        """Return the result blocks of the history."""
        blocks = [block for message in self.history for block in message["content"]]
        return [block for block in blocks if block["type"] == "tool-result"]

    def rebuild(self, request: RecordedRequest) -> list[Any]:
        """Return the messages of a request as the log on disk tells them."""
        log = self.log(request.lineage or "1")
        messages = conversation(log).messages
        if request.purpose == "compaction":
            return compaction.request_messages(messages)
        return messages

    def check(self) -> None:
        """Check what holds for every session, whatever happened in it."""
        if self._session is None or not self.checked:
            return
        for found in list(self.host.store.all()):
            log = self.host.store.read(found)
            check_turns(log.events)
            check_batches(log.events)
        assert self.log().events == self.events
        assert conversation(self.log()).messages == self.history
        check_updates(self.client.updates)


def conversation(log: SessionLog) -> Conversation:
    """Fold a log anew."""
    return Conversation(
        now=lambda: 0,
        new_id=lambda: "new",
        events=log.events,
        seed_length=log.header.seed_length,
    )


def check_turns(events: Sequence[Mapping[str, Any]]) -> None:
    """Check that every turn and every step ends once, and nothing else is open at the end."""
    opened: list[str] = []
    for event in events:
        kind, _, edge = event["type"].partition("/")
        if kind in ("turn", "step") and edge == "start":
            assert opened == ([] if kind == "turn" else ["turn"]), event
            opened.append(kind)
        elif kind in ("turn", "step") and edge == "end":
            assert opened.pop() == kind, event
    assert opened == []


def check_batches(events: Sequence[Mapping[str, Any]]) -> None:
    """Check the order of each step: its calls first, then their results in the same order."""
    calls: list[str] = []
    for event in events:
        if event["type"] == "step/start":
            calls = []
        elif event["type"] == "tool/call":
            calls.append(event["data"]["callId"])
        elif event["type"] == "tool/result":
            call = event["data"]["message"]["source"]["callId"]
            if calls or event["sourceEventSeqs"]:  # one repaired before it began has no event
                assert call == calls.pop(0)
        elif event["type"] == "step/end":
            assert calls == [], "a call has no result"


def check_updates(updates: Sequence[Mapping[str, Any]]) -> None:
    """Check that every call is announced first, and settled once, and last."""
    states: dict[str, str] = {}
    for update in updates:
        call = update.get("toolCallId")
        if call is None:
            continue
        if update["sessionUpdate"] == "tool_call":
            assert call not in states, f"{call} is announced twice"
        else:
            assert states[call] in ("pending", "in_progress"), f"{call} goes on after its end"
        states[call] = update["status"]
    assert all(state in ("completed", "failed") for state in states.values()), states


def _kind(update: Mapping[str, Any]) -> str:
    kind = str(update["sessionUpdate"])
    return f"{update['toolCallId']} {update['status']}" if kind.startswith("tool_call") else kind


def _shape(message: Mapping[str, Any]) -> str:
    kinds = [block["type"] for block in message["content"]]
    return f"{message['role']}: {' '.join(kinds)}"


def _text(block: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in block["content"])


def window(model: ScriptedModel, size: int) -> None:
    """Say how much a scripted model can read."""
    model.models = (ModelInfo(id="scripted", context_window=size),)


def parse(data: bytes) -> SessionLog:
    """Read a log's bytes."""
    return read_session_log(data)
