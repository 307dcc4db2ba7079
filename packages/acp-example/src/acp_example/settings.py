"""What a turn is told beforehand. No I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acp_example.permissions import Policy, offered
from acp_example.tools import Tool
from llm_replay.chunks import Failure
from llm_replay.seam import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a turn may go. None is no limit."""

    rounds: int | None = None
    calls: int | None = None
    tokens: int | None = None
    repeats: int | None = 3
    parallel: int = 8

    def reached(self, *, rounds: int, calls: int, tokens: int) -> str | None:
        """Return the stop reason of a turn that spent so much; None while it may go on."""
        if self.tokens is not None and tokens >= self.tokens:
            return "max_tokens"
        spent = ((self.rounds, rounds), (self.calls, calls))
        over = any(limit is not None and count >= limit for limit, count in spent)
        return "max_turn_requests" if over else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """When the history is summarised, and how much of what the user said is kept as it was."""

    threshold: float | None = 0.8
    keep_characters: int = 20_000


Retry = Callable[[Failure, RetryPolicy, int], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a turn needs to know and cannot see in its session's events."""

    session_id: str
    lineage: str
    provider: str
    model: str
    system: str
    policy: Policy
    retry: Retry
    tools: Sequence[Tool] = ()
    context_window: int | None = None
    reasoning_effort: str | None = None
    limits: Limits = field(default_factory=Limits)
    compaction: Compaction = field(default_factory=Compaction)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    locate: Callable[[str], str] = str
    """Spell a path of a call absolutely, for the client."""
    resumed: bool = False
    """Whether the session was loaded or forked, and has asked nothing since."""

    def tool(self, name: str) -> Tool | None:
        """Return a tool by its name, offered or not."""
        return next((tool for tool in self.tools if tool.spec.name == name), None)

    @property
    def offered(self) -> list[Tool]:
        """The tools that the model is told of in this mode."""
        return offered(self.tools, self.policy.mode)

    def schemas(self) -> list[dict[str, Any]]:
        """Return what the model sees of the tools: exactly name, description and schema."""
        return [
            {
                "name": tool.spec.name,
                "description": tool.spec.description,
                "schema": tool.spec.schema,
            }
            for tool in self.offered
        ]

    def header(self) -> Mapping[str, Any]:
        """Return what the log says the model was told."""
        config: dict[str, Any] = {"provider": self.provider, "model": self.model}
        if self.reasoning_effort is not None:
            config["reasoningEffort"] = self.reasoning_effort
        return {"config": config, "system": self.system, "tools": self.schemas()}
