"""What can go wrong, told apart by whose fault it is. No I/O.

`ScenarioError` is the author's, `FixtureError` the repository's, `AgentError`
the agent's; `SnapshotMismatchError` is no error but a test failure: behaviour
changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong: where, what, why it matters, what to do."""

    path: Path
    line: int | None = None
    what: str
    why: str = ""
    hint: str = ""

    def __str__(self) -> str:
        where = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        lines = [f"{where}: {self.what}"]
        if self.why:
            lines.append(f"  {self.why}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class HarnessError(Exception):
    """A scenario could not be judged."""


class _ProblemsError(HarnessError):
    """Carries every problem found, not only the first."""

    def __init__(self, *, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


class ScenarioError(_ProblemsError):
    """What an author wrote says something it may not: suite.toml, scenario.toml, input.json."""


class FixtureError(_ProblemsError):
    """What the repository holds can't be compared, or may not be written."""


class NestingError(HarnessError):
    """A record is nested more deeply than it can be followed."""

    def __init__(self) -> None:
        super().__init__(
            "a record of the log or the transcript, or a step, is nested too deeply\n"
            "  Some hundred levels can be followed.\n"
            "  hint: let the agent write flatter JSON, or flatten input.json"
        )


class AgentError(HarnessError):
    """The agent did not hold its side of the contract; a report shows its stderr once."""

    def __init__(
        self,
        *,
        what: str,
        hint: str = "",
        stderr_tail: str = "",
        exit_status: int | None = None,
    ) -> None:
        self.what = what
        self.hint = hint
        self.stderr_tail = stderr_tail
        self.exit_status = exit_status
        lines = [what]
        if exit_status is not None:
            lines.append(f"  exit status: {exit_status}")
        if hint:
            lines.append(f"  hint: {hint}")
        super().__init__("\n".join(lines))


class AgentExitedError(AgentError):
    """The agent ended before its work was done."""


class AgentTimeoutError(AgentError):
    """The agent did not do something within its deadline."""


class ImpureStdoutError(AgentError):
    """The agent wrote something to stdout that is no frame."""


class SnapshotMismatchError(AssertionError):
    """Behaviour changed: a test failure, not an error. Its text is the whole report."""
