"""What input.json may say: the client's side of a scenario, step by step."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from snapshot_harness.conditions import (
    DEFAULT_WAIT_MS,
    Interrupting,
    SessionStep,
    Step,
    WaitForEvent,
    WaitForFile,
    WaitForSubagentTurnEnd,
    WaitForTurnEnd,
    WaitForTurnStart,
    WaitForUpdate,
)
from snapshot_harness.documents import Strict, read_json
from snapshot_harness.exceptions import Problem, ScenarioError


class Initialize(Step):
    """The handshake."""

    op: Literal["initialize"] = "initialize"
    terminal_output: bool = pydantic.Field(default=False, alias="terminalOutput")
    """Announce `_meta.terminal_output`, an extension some agents know."""


class MakingSession(Step):
    """`session/new`, however it ends."""

    cwd: str | None = None
    """Another directory, relative to the run's cwd."""
    additional_directories: list[str] = pydantic.Field(default=[], alias="additionalDirectories")
    """Further roots, relative to the run's cwd."""
    mcp_servers: list[dict[str, Any]] = pydantic.Field(default=[], alias="mcpServers")
    """MCP servers, as ACP spells them."""


class NewSession(MakingSession):
    """`session/new` in the run's cwd."""

    op: Literal["newSession"] = "newSession"


class NewSessionExpectError(MakingSession):
    """`session/new` that must be refused."""

    op: Literal["newSessionExpectError"] = "newSessionExpectError"


class LoadSession(SessionStep):
    """`session/load` of a session that was made before."""

    op: Literal["loadSession"] = "loadSession"
    expect_error: bool = pydantic.Field(default=False, alias="expectError")
    """It must be refused."""


class Prompt(SessionStep):
    """One text; waits for the end of the turn."""

    op: Literal["prompt"] = "prompt"
    text: str
    """What the user says."""
    detach: bool = False
    """Go on at once; a later `cancel` or `restartAgent`, or the end, settles it."""


class PromptContent(SessionStep):
    """Content blocks exactly as given; waits for the end of the turn."""

    op: Literal["promptContent"] = "promptContent"
    content: list[dict[str, Any]]
    """ACP content blocks."""
    detach: bool = False
    """Go on at once; a later `cancel` or `restartAgent`, or the end, settles it."""


class PromptExpectError(SessionStep):
    """A prompt that must be answered with an error."""

    op: Literal["promptExpectError"] = "promptExpectError"
    text: str
    """What the user says."""


class PromptAndCancel(Interrupting):
    """A prompt that is cancelled at its condition; waits for the end of the turn."""

    op: Literal["promptAndCancel"] = "promptAndCancel"
    text: str
    """What the user says."""


class Cancel(Interrupting):
    """`session/cancel`; of a detached prompt at its condition, whose end is waited for."""

    op: Literal["cancel"] = "cancel"


class PromptAndWaitForAgentMessage(SessionStep):
    """A prompt, its end, and one message chunk that is exactly a text."""

    op: Literal["promptAndWaitForAgentMessage"] = "promptAndWaitForAgentMessage"
    text: str
    """What the user says."""
    wait_for_text: str = pydantic.Field(alias="waitForText")
    """The chunk's text."""
    timeout_ms: Annotated[int, pydantic.Field(gt=0)] = pydantic.Field(
        default=DEFAULT_WAIT_MS, alias="timeoutMs"
    )
    """How long to wait for it after the turn, in milliseconds."""


class RestartAgent(Interrupting):
    """End the agent and boot it again in the same run directory."""

    op: Literal["restartAgent"] = "restartAgent"
    kill: bool = False
    """Kill it instead of closing its stdin."""


class Request(Step):
    """Any request; `{{session:N}}` and the run's roots are filled in."""

    op: Literal["request"] = "request"
    method: str
    """The method."""
    params: dict[str, Any] | None = None
    """The parameters, as they are sent."""
    expect_error: bool | int = pydantic.Field(default=False, alias="expectError")
    """It must be answered with an error; a number is the code."""


class Notify(Step):
    """Any notification; `{{session:N}}` and the run's roots are filled in."""

    op: Literal["notify"] = "notify"
    method: str
    """The method."""
    params: dict[str, Any] | None = None
    """The parameters, as they are sent."""


class SendRaw(Step):
    """One line, exactly as given."""

    op: Literal["sendRaw"] = "sendRaw"
    line: str
    """The line, without its end."""


AnyStep = Annotated[
    Initialize
    | NewSession
    | NewSessionExpectError
    | LoadSession
    | Prompt
    | PromptContent
    | PromptExpectError
    | PromptAndCancel
    | Cancel
    | PromptAndWaitForAgentMessage
    | WaitForFile
    | WaitForTurnStart
    | WaitForTurnEnd
    | WaitForSubagentTurnEnd
    | WaitForUpdate
    | WaitForEvent
    | RestartAgent
    | Request
    | Notify
    | SendRaw,
    pydantic.Field(discriminator="op"),
]


_PROMPTS = (
    Prompt,
    PromptContent,
    PromptExpectError,
    PromptAndCancel,
    PromptAndWaitForAgentMessage,
)


class PermissionAnswer(Strict):
    """What the client says to one permission request."""

    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always", "hold"]
    """The kind of the option to choose; `hold` leaves the request open until a cancel."""
    tool_call: str | Annotated[int, pydantic.Field(ge=1)] | None = pydantic.Field(
        default=None, alias="toolCall"
    )
    """The tool call's id, or its number by first announcement."""
    after: Annotated[int, pydantic.Field(ge=0)] | None = None
    """Answer only after the answer with this index, from 0, was given."""


class Script(Strict):
    """`input.json`: what the client does."""

    json_schema: str | None = pydantic.Field(default=None, alias="$schema")
    """For editors."""
    steps: list[AnyStep] = pydantic.Field(min_length=1)
    """In order."""
    permission_answers: list[PermissionAnswer] = pydantic.Field(
        default=[], alias="permissionAnswers"
    )
    """First in, first out; named ones for their tool call."""

    @property
    def prompts(self) -> bool:
        """Whether any step asks the model something."""
        return any(isinstance(step, _PROMPTS) for step in self.steps)


def read_script(path: Path) -> Script:
    """Read an input.json.

    Raises:
        ScenarioError: With every problem of the file.
    """
    script = read_json(path, Script)
    problems = list(_answer_problems(path, script.permission_answers))
    if problems:
        raise ScenarioError(problems=problems)
    return script


def _answer_problems(path: Path, answers: list[PermissionAnswer]) -> Iterator[Problem]:
    for index, answer in enumerate(answers):
        if answer.after is None:
            continue
        place = f"permissionAnswers.{index}.after"
        if answer.after >= len(answers) or answers[answer.after].kind == "hold":
            what = f"{place}: {answer.after} is no answer that is ever given"
            hint = f"name one of the other {len(answers)} by its index, from 0, and no `hold`"
        elif _circular(answers, index):
            what, hint = f"{place}: it waits for itself", "let one of them wait for nothing"
        else:
            continue
        yield Problem(path=path, line=None, what=what, why="", hint=hint)


def _circular(answers: list[PermissionAnswer], index: int) -> bool:
    seen: set[int] = set()
    at: int | None = index
    while at is not None and at < len(answers) and at not in seen:
        seen.add(at)
        at = answers[at].after
    return at == index
