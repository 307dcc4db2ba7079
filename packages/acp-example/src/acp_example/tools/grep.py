"""The tool that finds text in files."""

import asyncio
import json
import re
import stat
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from acp_example.exceptions import ToolError
from acp_example.nofollow import status_of
from acp_example.tools import ToolContext, ToolResult, ToolSpec, grep_worker
from acp_example.tools.files import reported
from acp_example.tools.listing import listing
from acp_example.tools.patterns import Pattern, compile_pattern
from acp_example.tools.schema import boolean, integer, name, object_of, text_of
from acp_example.tools.walk import Walk

_LIMIT: Final = 100
_MOST: Final = 1000


def _title(given: Mapping[str, Any]) -> str:
    return f"Search for {text_of(given, 'pattern', 'text')}"


def _locations(given: Mapping[str, Any]) -> list[str]:
    return [text_of(given, "path", ".")]


class Grep:
    """Lists lines that a regular expression matches."""

    spec = ToolSpec(
        name="grep",
        description=(
            "Search the lines of text files for a regular expression in Python's syntax. "
            "Matches come as path:line: text."
        ),
        schema=object_of(
            {
                "pattern": name("The regular expression, matched within one line."),
                "path": name("The file or directory; the working directory by default."),
                "glob": name("Search only files whose path matches, for example *.py"),
                "ignore_case": boolean("Whether upper and lower case are the same."),
                "limit": integer(f"How many lines to list at most; {_LIMIT} by default."),
            },
            required=["pattern"],
        ),
        kind="search",
        mode="parallel",
        path_policy="read",
        timeout_s=30,
        annotations={"readOnlyHint": True},
        title=_title,
        locations=_locations,
    )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """List the lines."""
        pattern = _checked(arguments["pattern"])
        only = compile_pattern(arguments.get("glob", "**"))
        root = context.policy.resolve(arguments.get("path", "."), access="read")
        with reported(context.policy.display(root)):
            found = status_of(str(root))
        walk = Walk(root)
        try:
            files = (
                [root]
                if stat.S_ISREG(found.st_mode)
                else await asyncio.to_thread(_below, walk, only)
            )
        finally:
            walk.cancelled = True
        limit = min(arguments.get("limit", _LIMIT), _MOST)
        answer = await _ask(
            {
                "pattern": pattern,
                "ignoreCase": arguments.get("ignore_case", False),
                "limit": limit,
                "files": [(str(path), context.policy.display(path)) for path in files],
            }
        )
        listed = "first match is" if limit == 1 else f"first {limit} matches are"
        notices = [f"only the {listed} listed"] if answer["more"] else []
        if walk.stopped:
            notices.append("the directory is too large to be searched whole; narrow the path")
        matches = answer["matches"]
        lines = [f"{match['path']}:{match['line']}: {match['text']}" for match in matches]
        result = listing(lines, context, name="grep", nothing="no line matches", notices=notices)
        return replace(result, details={"matches": matches[: result.details["shown"]]})


def _checked(pattern: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            "VALIDATION_ERROR", f"the pattern {pattern!r} is no regular expression: {error}"
        ) from None
    return pattern


def _below(walk: Walk, only: Pattern) -> list[Path]:
    return [walk.root / path for path in walk.files() if only.matches(path)]


async def _ask(query: Mapping[str, Any]) -> dict[str, Any]:
    """Put a query to a worker process, which dies with the call."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-X", "utf8", grep_worker.__file__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        answer, _ = await process.communicate(json.dumps(query).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ToolError("EXECUTION_ERROR", f"the search ended with status {process.returncode}")
    found: dict[str, Any] = json.loads(answer)
    return found
