"""What agent.toml may say."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CompactionTable(_Table):
    """When the history is summarised."""

    threshold: float | None = Field(default=0.8, gt=0, le=1)
    keep_characters: int = Field(default=20_000, ge=0)


class AgentTable(_Table):
    """Which model answers, and how far it may go."""

    provider: str = Field(default="deepseek", min_length=1)
    model: str = Field(default="deepseek-chat", min_length=1)
    reasoning_effort: str | None = None
    permission_mode: Literal["read-only", "workspace-write", "full-access"] = "read-only"
    approvals: Literal["strict", "on-request", "never"] = "on-request"
    permission_timeout_s: float | None = Field(default=None, gt=0)
    max_rounds: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=1)
    max_turn_tokens: int | None = Field(default=None, ge=1)
    repeat_limit: int | None = Field(default=3, ge=1)
    parallel_calls: int = Field(default=8, ge=1)
    subagent_depth: int = Field(default=2, ge=0)
    prompt: str | None = Field(default=None, min_length=1)
    instructions: str = ""
    compaction: CompactionTable = CompactionTable()


class LogTable(_Table):
    """How session logs are kept. The environment of a snapshot run goes before all of it."""

    layout: Literal["plain", "packed"] = "plain"
    compression: Literal["none", "zstd"] = "zstd"
    sessions_root: str | None = None
    spill_root: str | None = None
    verify: bool = False
    """Whether each log is read back when its session is let go of, and must tell the same."""


class PluginTable(_Table):
    """One plugin: an id of this composition, where its code is, and its configuration."""

    id: str = Field(min_length=1)
    use: str = Field(min_length=1)
    disabled: bool = False
    config: dict[str, Any] = {}


class Document(_Table):
    """A whole composition, overlays applied."""

    agent: AgentTable = AgentTable()
    log: LogTable = LogTable()
    plugin: list[PluginTable] = []
