"""An agent put together by hand, in one process: scripted model, virtual clock, scripted client."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loop_checks import check_batches, check_turns, check_updates, conversation
from loop_fakes import (
    FakeClient,
    FakeExecutor,
    FakeTool,
    Gates,
    Json,
    VirtualClock,
    gate,
    settle,
)
from loop_store import MemoryStore

from acp_example import compaction
from acp_example.composition import Composition
from acp_example.config import AgentTable, LogTable
from acp_example.effects import Outcome
from acp_example.host import Host
from acp_example.live import Session
from acp_example.llm import Llm
from acp_example.sessions import Sessions
from acp_example.spill import SpillRoot
from acp_example.store import Store
from acp_example.tools import Tool, ToolRegistry
from llm_replay.scripted_model import RecordedRequest, ScriptedModel
from llm_replay.seam import ModelInfo
from llm_replay.session_log import SessionLog

__all__ = [
    "Bench",
    "FakeTool",
    "Gates",
    "Json",
    "Make",
    "conversation",
    "gate",
    "settle",
    "window",
]

T = TypeVar("T")
Make = Callable[..., "Bench"]


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


def _shape(message: Mapping[str, Any]) -> str:
    kinds = [block["type"] for block in message["content"]]
    return f"{message['role']}: {' '.join(kinds)}"


def _text(block: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in block["content"])


def window(model: ScriptedModel, size: int) -> None:
    """Say how much a scripted model can read."""
    model.models = (ModelInfo(id="scripted", context_window=size),)
