"""The tool that runs a shell command."""

import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from acp_example.bounds import Limit, cut_middle
from acp_example.tools import Execution, ToolContext, ToolResult, ToolSpec
from acp_example.tools.commands import review
from acp_example.tools.files import directory
from acp_example.tools.schema import integer, name, object_of, text_of

_TIMEOUT_S: Final = 120
_LONGEST_S: Final = 600


def _title(given: Mapping[str, Any]) -> str:
    return text_of(given, "command", "Run a command").strip().split("\n", 1)[0]


def _locations(given: Mapping[str, Any]) -> list[str]:
    return [text_of(given, "workdir", ".")]


class Bash:
    """Runs a command in a fresh bash; nothing carries over from one call to the next."""

    spec = ToolSpec(
        name="bash",
        description=(
            "Run a command with bash and see its output and exit code. Each call is a new shell "
            "without input: directory and variables of earlier calls are gone, and what still "
            "runs in the background when the shell ends is stopped."
        ),
        schema=object_of(
            {
                "command": name("What bash shall run."),
                "workdir": name("Where to run it; the working directory by default."),
                "timeout_s": {
                    **integer(f"Stop it after so many seconds; {_TIMEOUT_S} by default."),
                    "maximum": _LONGEST_S,
                },
            },
            required=["command"],
        ),
        kind="execute",
        mode="parallel",
        path_policy="read",
        timeout_s=_LONGEST_S + 10,
        annotations={"destructiveHint": True, "openWorldHint": True},
        title=_title,
        locations=_locations,
        review=review,
    )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run the command."""
        workdir = directory({"path": arguments.get("workdir", ".")}, context)
        execution = await context.executor.run(
            arguments["command"],
            cwd=workdir,
            environment=context.environment,
            timeout_s=arguments.get("timeout_s", _TIMEOUT_S),
        )
        streams = {"stdout": execution.stdout, "stderr": execution.stderr}
        shown = {key: _bounded(key, text, context) for key, text in streams.items()}
        return ToolResult(
            text="\n".join(
                [_status(execution), *(_section(key, shown[key]) for key in shown if shown[key])]
            ),
            truncated=execution.truncated or shown != streams,
            details={
                "exitCode": execution.exit_code,
                "workdir": context.policy.display(workdir),
            },
        )


def _status(execution: Execution) -> str:
    code = execution.exit_code
    if code >= 0:
        return f"exit code: {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


def _section(key: str, text: str) -> str:
    return f"{key}:\n{text.removesuffix(chr(10))}"


def _bounded(key: str, text: str, context: ToolContext) -> str:
    """Return what a model reads of a stream; where that is not all, the rest is kept in a file."""
    limit = Limit()
    if limit.admits(text):
        return text
    marker = f"[the middle of {len(text.encode('utf-8', 'replace'))} bytes is left out here"
    if context.spill is not None:
        path = context.spill.write(context.call, f"bash-{key}.txt", text)
        marker += f"; read {str(path)!r} for all of it"
    return cut_middle(text, f"{marker}]", limit)
