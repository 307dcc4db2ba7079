"""The contract between the loop and a tool. No I/O."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from acp_example.exceptions import FatalToolError, ToolError

__all__ = [
    "CallInfo",
    "Diff",
    "Execution",
    "Executor",
    "FatalToolError",
    "PathPolicy",
    "Review",
    "Spill",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
]

Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
Review = Literal["allow", "deny", "ask"]


def _no_locations(_arguments: Mapping[str, Any]) -> list[str]:
    return []


def _no_review(_arguments: Mapping[str, Any], _mode: str) -> Review | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """Everything that is known about a tool before it runs; all of it is stated, never guessed.

    The model sees `name`, `description` and `schema`, and nothing else. The callables get
    arguments that may be anything a model sends: they must cope with missing keys.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    kind: Kind
    mode: Literal["parallel", "exclusive"]
    path_policy: Literal["none", "read", "write"]
    timeout_s: float | None
    annotations: Mapping[str, Any]
    title: Callable[[Mapping[str, Any]], str]
    """One line for the client, for example ``Read src/a.py``."""
    locations: Callable[[Mapping[str, Any]], list[str]] = _no_locations
    """The paths a call touches, as the model spelled them; checked against `path_policy`."""
    review: Callable[[Mapping[str, Any], str], Review | None] = _no_review
    """The tool's own judgement of a call under a permission mode; None abstains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """Where a call stands: its session's lineage, turn, step and place in the step, from 1."""

    lineage: str
    turn: int
    step: int
    k: int
    call_id: str
    """The id the model chose. It is for the log; names of files come from the position."""

    @property
    def position(self) -> str:
        """Return `<turn>.<step>.<k>`, which names this call in frames and files."""
        return f"{self.turn}.{self.step}.{self.k}"


@dataclass(frozen=True, slots=True)
class Diff:
    """A file before and after; `old` is None for a file that was not there."""

    path: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gives back. The model sees the text, and the notice in brackets after it."""

    text: str
    is_error: bool = False
    code: str | None = None
    notice: str | None = None
    truncated: bool = False
    diffs: Sequence[Diff] = ()
    plan: Sequence[Mapping[str, Any]] | None = None
    """Entries of an ACP plan, where the call changed the plan."""
    images: Sequence[Mapping[str, Any]] = ()
    """Image content blocks `{type: image, mimeType, data}`."""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def visible(self) -> str:
        """Return the text that the model reads."""
        return f"{self.text}\n\n[{self.notice}]" if self.notice else self.text


class PathPolicy(Protocol):
    """Which paths a session may touch."""

    @property
    def base(self) -> Path:
        """The directory that relative paths start from."""
        ...

    def resolve(self, path: str, *, access: Literal["read", "write"]) -> Path:
        """Return the real path, or raise `ToolError` PATH_OUTSIDE_ALLOWED_ROOT."""
        ...

    def display(self, path: Path) -> str:
        """Spell a real path for people and models, relative to the base where it is below."""
        ...


class Spill(Protocol):
    """Where output goes that is too long for a model."""

    def write(self, call: CallInfo, name: str, text: str) -> Path:
        """Keep the whole text and return the path it is kept at."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a command ended. `exit_code` is negative for a signal, as in `subprocess`."""

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool = False


class Executor(Protocol):
    """Runs shell commands; a plugin may put a sandbox here."""

    async def run(
        self, command: str, *, cwd: Path, environment: Mapping[str, str], timeout_s: float | None
    ) -> Execution:
        """Run a command to its end; kill all of it when cancelled.

        Raises:
            ToolError: TIMEOUT, where it ran longer than `timeout_s`.
        """
        ...


Delegate = Callable[[CallInfo, Mapping[str, Any]], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a running call may use."""

    cwd: Path
    call: CallInfo
    policy: PathPolicy
    environment: Mapping[str, str]
    read_files: set[Path]
    """Real paths that this session has read so far; `edit` asks, `read` and `write` add."""
    executor: Executor
    spill: Spill | None = None
    images: bool = False
    """Whether the model of this session takes images."""
    delegate: Delegate | None = None
    """Hands a task to a subagent; None where the depth limit is reached."""


class Tool(Protocol):
    """A tool: a contract and a body.

    The body gets arguments that fit the schema, without keys whose value was null. It returns a
    result, or raises `ToolError` for what a model can recover from. `FatalToolError` ends the turn.
    """

    @property
    def spec(self) -> ToolSpec:
        """The contract."""
        ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Do what the call asks for."""
        ...


class ToolRegistry:
    """The tools of a composition, in one canonical order whoever registered first."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> Callable[[], None]:
        """Add a tool and return what takes it away again."""
        name = tool.spec.name
        if name in self._tools:
            raise ValueError(f"two tools are named {name!r}")
        self._tools[name] = tool

        def undo() -> None:
            if self._tools.get(name) is tool:
                del self._tools[name]

        return undo

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name."""
        return self._tools.get(name)

    def all(self) -> list[Tool]:
        """Return every tool, ordered by name."""
        return [self._tools[name] for name in sorted(self._tools)]
