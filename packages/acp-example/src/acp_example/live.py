"""A session that is open: its log, what it may do, and the turn under way."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from acp_example.effects import Outcome
from acp_example.host import Host
from acp_example.log_file import LogWriter
from acp_example.loop import Turn
from acp_example.paths import roots_for
from acp_example.permissions import Grants, Mode, Policy, offered
from acp_example.runner import Client, Runner, World
from acp_example.session import Conversation
from acp_example.settings import Compaction, Limits, Settings
from acp_example.tools import CallInfo, Delegate, Tool, ToolContext
from acp_example.updates import FrameNames
from llm_replay.seam import ModelInfo, RetryPolicy


@dataclass(kw_only=True)
class Session:
    """An open session. It prompts one turn at a time."""

    host: Host
    header: Mapping[str, Any]
    conversation: Conversation
    writer: LogWriter
    client: Client
    mode: Mode
    provider: str
    model: str
    reasoning_effort: str | None = None
    frames: FrameNames = field(default_factory=FrameNames)
    resumed: bool = False
    broken: bool = False
    """Whether a turn broke off, for example by a full disk: only what is on disk counts then."""
    grants: Grants = field(default_factory=Grants)
    read_files: set[Path] = field(default_factory=set)
    _runner: Runner | None = None
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lineage(self) -> str:
        """Where the session comes from."""
        return str(self.header["lineage"])

    @property
    def cwd(self) -> Path:
        """The session's working directory."""
        return Path(self.header["cwd"])

    @property
    def depth(self) -> int:
        """How many sessions stand above this one."""
        return int(self.header["delegationDepth"])

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self._runner is not None

    @property
    def info(self) -> ModelInfo | None:
        """What the catalogue says of the session's model."""
        return self.host.composition.llm.model(self.provider, self.model)

    @property
    def takes_images(self) -> bool:
        """Whether the session's model takes images."""
        return self.info is not None and "image" in self.info.input_modalities

    async def prompt(self, content: Sequence[Mapping[str, Any]]) -> Outcome:
        """Run one turn and return how it ended."""
        message = {
            "id": self.conversation.new_id(),
            "role": "user",
            "content": list(content),
            "source": {"kind": "user"},
        }
        settings = self.settings()
        turn = Turn(self.conversation, settings, self.frames)
        self._runner = Runner(turn, self._world(settings))
        self._idle.clear()
        try:
            outcome = await self._runner.run(message)
            self.writer.flush()
        except Exception:
            # What is in memory and what is on disk differ from now on.
            self.broken = True
            raise
        finally:
            self._runner = None
            self._idle.set()
            self.resumed = False
        return outcome

    def cancel(self, by: str = "user") -> None:
        """Cancel the turn under way; harmless where there is none."""
        if self._runner is not None:
            self._runner.cancel(by)

    def close(self) -> None:
        """Let go of the log.

        Raises:
            LogMismatchError: It was to be verified, and tells something else.
        """
        self.writer.close()
        if not self.broken:
            self.host.verify(self.lineage, self.conversation)

    async def idle(self) -> None:
        """Wait until no turn is under way."""
        if self.busy:
            await self._idle.wait()

    def record(self, kind: str, data: Mapping[str, Any], **envelope: object) -> None:
        """Log an event that belongs to no turn."""
        self.writer.write(self.conversation.record(kind, data, **envelope))

    def locate(self, path: str) -> str:
        """Spell a path of a call absolutely, for the client."""
        return os.path.normpath(self.cwd / path)

    def settings(self) -> Settings:
        """Return what the next turn is told."""
        agent = self.host.composition.agent
        info = self.info
        adapter = self.host.composition.llm.providers.get(self.provider)
        tools = self._tools()
        return Settings(
            session_id=self.header["id"],
            lineage=self.lineage,
            provider=self.provider,
            model=self.model,
            system=self.host.system_prompt(self.cwd, offered(tools, self.mode)),
            policy=self._policy(),
            tools=tools,
            context_window=info.context_window if info else None,
            reasoning_effort=self.reasoning_effort,
            limits=Limits(
                rounds=agent.max_rounds,
                calls=agent.max_tool_calls,
                tokens=agent.max_turn_tokens,
                repeats=agent.repeat_limit,
                parallel=agent.parallel_calls,
            ),
            compaction=Compaction(
                threshold=agent.compaction.threshold,
                keep_characters=agent.compaction.keep_characters,
            ),
            retry_policy=(adapter.retry_policy if adapter else None) or RetryPolicy(),
            retry=self.host.retry,
            locate=self.locate,
            resumed=self.resumed,
        )

    def _policy(self) -> Policy:
        return Policy(
            mode=self.mode,
            approvals=self.host.composition.agent.approvals,
            paths=roots_for(self.mode, cwd=self.cwd, others=self.host.shared_roots),
            grants=self.grants,
        )

    def _tools(self) -> list[Tool]:
        deepest = self.depth >= self.host.composition.agent.subagent_depth
        tools = self.host.composition.tools.all()
        return [tool for tool in tools if not (deepest and tool.spec.name == "task")]

    def _world(self, settings: Settings) -> World:
        return World(
            llm=self.host.composition.llm,
            clock=self.host.clock,
            client=self.client,
            write=self.writer.write,
            context=partial(self._context, settings.policy),
            permission_timeout_s=self.host.composition.agent.permission_timeout_s,
        )

    def _context(self, policy: Policy, call: CallInfo) -> ToolContext:
        return ToolContext(
            cwd=self.cwd,
            call=call,
            policy=policy.paths,
            environment=self.host.environment,
            read_files=self.read_files,
            executor=self.host.composition.executor,
            spill=self.host.spill,
            images=self.takes_images,
            delegate=self._delegate(policy.mode),
        )

    def _delegate(self, mode: Mode) -> Delegate | None:
        from acp_example.subagents import delegate  # noqa: PLC0415  a subagent is a session too

        if self.depth >= self.host.composition.agent.subagent_depth:
            return None
        return partial(delegate, self, mode)
