"""Whether a tool call may run: modes, approvals and what the user said for good. No I/O."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from acp_example.exceptions import ToolError
from acp_example.tools import PathPolicy, Tool, ToolSpec

Mode = Literal["read-only", "workspace-write", "full-access"]
Approvals = Literal["strict", "on-request", "never"]
Answer = Literal[
    "allow_once",
    "allow_always",
    "reject_once",
    "reject_always",
    "cancelled",
    "timeout",
    "unavailable",
]

MODES: Final[Mapping[str, tuple[str, str]]] = {
    "read-only": (
        "Read only",
        "Look around; nothing is written, commands that may write are refused",
    ),
    "workspace-write": ("Workspace write", "Edit files in the workspace; ask before commands"),
    "full-access": ("Full access", "Do anything, anywhere, without asking"),
}
APPROVALS: Final = ("strict", "on-request", "never")

OPTIONS: Final = (
    {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "allow-always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject-once", "name": "Reject once", "kind": "reject_once"},
    {"optionId": "reject-always", "name": "Always reject", "kind": "reject_always"},
)

_HARMLESS: Final = frozenset({"read", "search", "think"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What became of a call before it ran, and who decided."""

    verdict: Literal["allow", "deny", "ask"]
    source: str
    code: str = ""
    message: str = ""


@dataclass(slots=True)
class Grants:
    """What the user allowed or rejected for the rest of the session."""

    allowed: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)

    def remember(self, key: str, answer: Answer) -> None:
        """Keep an `always` answer; the others leave no trace."""
        if answer == "allow_always":
            self.allowed.add(key)
        elif answer == "reject_always":
            self.rejected.add(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a session may do."""

    mode: Mode
    approvals: Approvals
    paths: PathPolicy
    grants: Grants

    def judge(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Judgement:
        """Decide about one call. A denial is final, whatever else would allow the call."""
        denial = self._denial(spec, arguments)
        if denial is not None:
            return denial
        review = spec.review(arguments, self.mode)
        if review == "deny":
            return _denied(
                "tool", "PERMISSION_DENIED", f"{spec.name!r} may not do this in mode {self.mode!r}"
            )
        if review == "allow":
            return Judgement(verdict="allow", source="tool")
        if grant_key(spec, arguments) in self.grants.allowed:
            return Judgement(verdict="allow", source="user")
        if review == "ask":
            return Judgement(verdict="ask", source="tool")
        return self._run_policy(spec)

    def _denial(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Judgement | None:
        if grant_key(spec, arguments) in self.grants.rejected:
            return _denied("user", "APPROVAL_DENIED", "the user always rejects this call")
        if self.mode == "read-only" and spec.path_policy == "write":
            return _denied(
                "mode", "PERMISSION_DENIED", f"{spec.name!r} may not run: this session is read-only"
            )
        if spec.path_policy == "none":
            return None
        for path in spec.locations(arguments):
            try:
                self.paths.resolve(path, access=spec.path_policy)
            except ToolError as refusal:
                return _denied("paths", refusal.code, refusal.message)
        return None

    def _run_policy(self, spec: ToolSpec) -> Judgement:
        if spec.kind in _HARMLESS:
            return Judgement(verdict="allow", source="policy")
        if self.approvals == "never" and self.mode == "read-only":
            return _denied(
                "policy",
                "PERMISSION_DENIED",
                f"{spec.name!r} may not run: this session is read-only",
            )
        asks = self.approvals == "strict" or (
            self.approvals == "on-request"
            and self.mode != "full-access"
            and spec.path_policy != "write"
        )
        return Judgement(verdict="ask" if asks else "allow", source="policy")


def offered(tools: Iterable[Tool], mode: str) -> list[Tool]:
    """Return the tools that a model is told of in a mode."""
    return [tool for tool in tools if mode != "read-only" or tool.spec.path_policy != "write"]


def grant_key(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return what an `always` answer covers: a tool, or for commands exactly this one."""
    if spec.kind != "execute":
        return spec.name
    return f"{spec.name} {json.dumps(arguments, sort_keys=True)}"


def _denied(source: str, code: str, message: str) -> Judgement:
    return Judgement(verdict="deny", source=source, code=code, message=message)
