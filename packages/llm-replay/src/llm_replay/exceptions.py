"""What can go wrong, told apart by whose fault it is. No I/O.

`ReplayError` and all below it: the fixture can't be replayed as it stands.
`RecordedFailureError` is not one of them: it is the provider's own failure,
played back.
"""

from collections.abc import Sequence
from dataclasses import dataclass


def _text(where: str, what: str, why: str = "", hint: str = "") -> str:
    """Build an error's text: where and what, why it matters, what to do."""
    lines = [f"{where}: {what}" if where else what]
    if why:
        lines.append(f"  {why}")
    if hint:
        lines.append(f"  hint: {hint}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a document: where in it, and what."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class ReplayError(Exception):
    """The fixture can't be replayed as it stands. Never retry or translate this."""


class SessionLogError(ReplayError):
    """A line of a session log is not what a log may contain."""

    def __init__(  # noqa: PLR0913  facts, all by keyword
        self,
        *,
        name: str,
        what: str,
        line: int | None = None,
        column: int | None = None,
        why: str = "",
        hint: str = "",
    ) -> None:
        self.name = name
        self.line = line
        self.column = column
        self.what = what
        places = [name, *(str(number) for number in (line, column) if number is not None)]
        super().__init__(_text(":".join(places), what, why, hint))


class ScriptError(ReplayError):
    """No script can be derived from a log."""

    def __init__(self, *, where: str, what: str, why: str = "", hint: str = "") -> None:
        self.where = where
        self.what = what
        super().__init__(_text(where, what, why, hint))


class UnfinishedCallError(ScriptError):
    """A recorded model call has no closing finish chunk."""

    def __init__(self, *, where: str, turn: object, step: object, why: str, hint: str) -> None:
        self.turn = turn
        self.step = step
        super().__init__(
            where=where,
            what=f"the model call of turn {turn}, step {step} never finished",
            why=why,
            hint=hint,
        )


class _DocumentError(ReplayError):
    """A hand-written document has problems; all of them are told at once."""

    hint = ""

    def __init__(self, *, where: str, problems: Sequence[Problem], hint: str = "") -> None:
        self.where = where
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"{where}: {count}", *(f"  {problem}" for problem in problems)]
        super().__init__("\n".join([*lines, f"  hint: {hint or self.hint}"]))


class OverrideError(_DocumentError):
    """The override sidecar says something impossible."""

    hint = "an override is a list of entries, or patches for single calls; see the README"


class ConfigError(_DocumentError):
    """The plugin's configuration says something impossible."""

    hint = "the keys are file, overrideFile, childFiles, providers, paceMs, pace"


class ReplayFault(ReplayError):  # noqa: N818  "fault" is the verdict's own word
    """The fixture and the run disagree while serving; `kind` is the verdict's word for it."""

    kind = ""


class ReplayExhaustedError(ReplayFault):
    """The agent asked for more calls than were recorded."""

    kind = "exhausted"

    def __init__(self, *, file: str, calls: int) -> None:
        self.file = file
        self.calls = calls
        super().__init__(
            _text(
                file,
                f"the agent asked for model call {calls + 1}, and {calls} are recorded",
                "The run took another course than the recording.",
                "find out why, or record the scenario again",
            )
        )


class UnknownSessionError(ReplayFault):
    """More live sessions than recorded ones, or a lineage that was not recorded."""

    kind = "unknown-session"

    def __init__(self, *, session: str | None, lineage: str | None, recorded: int) -> None:
        self.session = session
        self.lineage = lineage
        self.recorded = recorded
        called = "the anonymous session" if session is None else f"the session {session!r}"
        called += "" if lineage is None else f" of lineage {lineage!r}"
        super().__init__(
            _text(
                "",
                f"{called} has no recorded script that is free ({recorded} recorded)",
                "Each live session takes one script: that of its lineage, else the next in order.",
                "a changed order of calls means that the scenario must be recorded again",
            )
        )


class TwoStreamsError(ReplayFault):
    """A session asked for a stream while another of its own was open."""

    kind = "two-streams"

    def __init__(self, *, file: str, call: int) -> None:
        self.file = file
        self.call = call
        super().__init__(
            _text(
                file,
                f"model call {call} was asked for while another of its session was open",
                "A session's calls are served in order, so only one may be open.",
                "read each stream to its end, or close it, before asking for the next",
            )
        )


class PlaceholderError(ReplayFault):
    """A `{{fromRequest:…}}` can't be filled in."""

    kind = "placeholder"

    def __init__(self, *, what: str, why: str = "", hint: str = "") -> None:
        self.what = what
        super().__init__(_text("", what, why, hint))


class PatternTimeoutError(PlaceholderError):
    """A placeholder's pattern took too long."""

    kind = "pattern-timeout"


class UnresolvedRootError(ReplayFault):
    """A token stands for a root that this process doesn't know."""

    kind = "unresolved-root"

    def __init__(self, *, token: str, variable: str) -> None:
        self.token = token
        self.variable = variable
        super().__init__(
            _text(
                "",
                f"{token} can't be served: this process doesn't know that directory",
                f"It comes from the environment variable {variable}, which is not set.",
                f"set {variable} for the agent under test",
            )
        )


class UnclaimedScriptError(ReplayError):
    """Recorded calls that nobody asked for."""

    def __init__(self, *, leftovers: Sequence[tuple[str, int, int]]) -> None:
        self.leftovers = tuple(leftovers)
        lines = [
            f"{file}: {served} of {calls} calls were served" for file, served, calls in leftovers
        ]
        super().__init__(
            _text(
                "",
                "\n  ".join(["recorded model calls were never asked for", *lines]),
                hint="find out why the run ended early, or record the scenario again",
            )
        )


class RequestError(ReplayError):
    """A request that no runtime should make; every problem of it is told at once."""

    def __init__(self, *, number: int, problems: Sequence[str]) -> None:
        self.number = number
        self.problems = tuple(problems)
        super().__init__(
            _text(
                f"request {number}",
                "\n  ".join(["the runtime asked the model for something odd", *problems]),
                hint="repair the runtime; if the test means it, see the README on requests",
            )
        )


class VerdictError(ReplayError):
    """A line of a verdict file is no fact."""

    def __init__(self, *, file: str, line: int) -> None:
        self.file = file
        self.line = line
        super().__init__(
            _text(
                f"{file}:{line}",
                "this line of the verdict is no fact",
                'Each whole line is a JSON object with "fact" in it, written at once.',
                "compare what wrote it with verdict.schema.json of llm_replay",
            )
        )


class RecordedFailureError(Exception):
    """The provider's own failure, played back. Not a `ReplayError`."""

    def __init__(self, *, message: str, code: str) -> None:
        self.message = message
        self.code = code
        super().__init__(f"{code}: {message}")
