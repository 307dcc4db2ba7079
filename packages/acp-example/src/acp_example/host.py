"""What all sessions of one agent process share."""

import random
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from acp_example.clock import Clock, SystemClock
from acp_example.composition import Composition
from acp_example.exceptions import LogMismatchError
from acp_example.prompt import system_prompt
from acp_example.retry import retry_delay_ms
from acp_example.session import Conversation
from acp_example.spill import SpillRoot
from acp_example.store import Store
from acp_example.tools import Tool
from llm_replay.chunks import Failure
from llm_replay.seam import RetryPolicy


def _uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The composition, and everything of the world that a test may want to replace."""

    composition: Composition
    store: Store
    spill: SpillRoot
    environment: Mapping[str, str]
    clock: Clock = field(default_factory=SystemClock)
    new_id: Callable[[], str] = _uuid
    chance: Callable[[], float] = random.random

    def verify(self, lineage: str, conversation: Conversation) -> None:
        """Read a session's log back, where that is asked for: it must tell what happened.

        Raises:
            LogMismatchError: It tells something else.
        """
        if not self.composition.log.verify:
            return
        found = next(log for log in self.store.all() if log.header["lineage"] == lineage)
        log = self.store.read(found)
        rebuilt = Conversation(
            now=self.clock.now_ms,
            new_id=self.new_id,
            events=log.events,
            seed_length=log.header.seed_length,
        )
        if rebuilt.events != conversation.events or rebuilt.messages != conversation.messages:
            raise LogMismatchError(path=str(found.path))

    @property
    def shared_roots(self) -> list[Path]:
        """What every session may use besides its working directory."""
        temporary = self.environment.get("TMPDIR")
        return [self.spill.root, *([Path(temporary)] if temporary else [])]

    def system_prompt(self, cwd: Path, tools: Iterable[Tool]) -> str:
        """Return the system prompt of a session that offers these tools."""
        agent = self.composition.agent
        return system_prompt(
            cwd=str(cwd),
            tools={tool.spec.name for tool in tools},
            prompt=agent.prompt,
            instructions=agent.instructions,
        )

    def retry(self, failure: Failure, policy: RetryPolicy, retry: int) -> int | None:
        """Say after how long a failed call is tried again; None gives up."""
        return retry_delay_ms(failure, policy, retry=retry, random=self.chance)
