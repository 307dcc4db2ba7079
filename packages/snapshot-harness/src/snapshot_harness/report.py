"""What a scenario came to: as text for people, as JSON, as GitHub annotations. No I/O."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from snapshot_harness.causes import Cause, diff, render
from snapshot_harness.exceptions import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One scenario's outcome in one mode, with all that explains it.

    `problems` are texts about the run itself (the verdict, a deadline);
    `causes` are differences. `kept` is where the actual files were put, and
    `accept` the command that takes them over.
    """

    scenario: str
    directory: Path
    mode: str
    outcome: Literal["passed", "failed", "error"]
    seconds: float = 0.0
    problems: Sequence[str] = ()
    causes: Sequence[Cause] = ()
    kept: Path | None = None
    accept: str = ""
    stderr_tail: str = ""
    notes: Sequence[str] = ()
    written: Sequence[str] = field(default_factory=tuple)


def failure_text(report: Report) -> str:
    """Return why a scenario failed: the cause first, then what to do about it."""
    parts = [f"{report.scenario}: {_headline(report)}", *report.problems]
    if report.causes:
        parts.append(render(report.causes, directory=str(report.directory)))
        parts.append(diff(report.causes))
    parts += report.notes
    if report.kept is not None:
        parts.append(f"  the actual files are in {report.kept}")
    if report.accept:
        parts.append(f"  hint: if this change is meant: {report.accept}")
    if report.stderr_tail:
        parts.append("  the last the agent wrote to stderr:")
        parts.extend(f"    {line}" for line in report.stderr_tail.splitlines())
    return "\n".join(parts)


def verdict_line(report: Report) -> str:
    """Return one line for the terminal's summary."""
    outcome = f"{report.outcome.upper():6}"
    return f"{outcome} {report.scenario} ({report.seconds:.2f} s): {_headline(report)}"


def as_json(report: Report) -> dict[str, Any]:
    """Return a report as a JSON object."""
    facts = asdict(report)
    facts["directory"] = str(report.directory)
    facts["kept"] = None if report.kept is None else str(report.kept)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in facts.items()}


def annotation(report: Report) -> str:
    """Return a failed scenario as a GitHub workflow command."""
    file, line = report.directory / "scenario.toml", 1
    if report.causes:
        file, line = report.directory / report.causes[0].file, report.causes[0].line or 1
    return text_annotation(file, line, f"snapshot {report.scenario}", failure_text(report))


def problem_annotation(problem: Problem) -> str:
    """Return a guard's problem as a GitHub workflow command."""
    return text_annotation(problem.path, problem.line, "snapshot guards", str(problem))


def text_annotation(file: Path, line: int | None, title: str, text: str) -> str:
    """Return a text about a place in a file as a GitHub workflow command."""
    place = f"file={_escaped(str(file), ':,')},line={line or 1}"
    return f"::error {place},title={_escaped(title, ':,')}::{_escaped(text)}"


def _headline(report: Report) -> str:
    if report.outcome == "passed":
        count = len(report.written)
        files = "1 file" if count == 1 else f"{count} files"
        return f"{files} written" if count else "as expected"
    if report.problems:
        return "the run itself failed"
    differences = sum(1 + cause.folded for cause in report.causes)
    return f"behaviour differs in {differences} {'place' if differences == 1 else 'places'}"


def _escaped(text: str, extra: str = "") -> str:
    for char in f"%\r\n{extra}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text
