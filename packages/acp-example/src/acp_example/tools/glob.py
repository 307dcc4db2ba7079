"""The tool that finds files by name."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from acp_example.tools import ToolContext, ToolResult, ToolSpec
from acp_example.tools.files import directory
from acp_example.tools.listing import listing
from acp_example.tools.patterns import Pattern, compile_pattern
from acp_example.tools.schema import integer, name, object_of, text_of
from acp_example.tools.walk import Walk

_LIMIT: Final = 200


def _title(given: Mapping[str, Any]) -> str:
    return f"Find {text_of(given, 'pattern', 'files')}"


def _locations(given: Mapping[str, Any]) -> list[str]:
    return [text_of(given, "path", ".")]


class Glob:
    """Lists files whose path matches a pattern."""

    spec = ToolSpec(
        name="glob",
        description=(
            "Find files by name. `*` stands for anything within a name, `**` for any number of "
            "directories, {a,b} for either. A pattern without a slash matches at any depth."
        ),
        schema=object_of(
            {
                "pattern": name("For example src/**/*.py"),
                "path": name("The directory to look in; the working directory by default."),
                "limit": integer(f"How many files to list at most; {_LIMIT} by default."),
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
        """List the files."""
        pattern = compile_pattern(arguments["pattern"])
        root = directory(arguments, context)
        limit = arguments.get("limit", _LIMIT)
        walk = Walk(root)
        try:
            found = await asyncio.to_thread(_find, walk, pattern, limit)
        finally:
            walk.cancelled = True
        shown = [context.policy.display(root / path) for path in found[:limit]]
        notices = []
        if len(found) > limit:
            listed = "first file is" if limit == 1 else f"first {limit} files are"
            notices.append(f"only the {listed} listed; narrow the pattern")
        if walk.stopped and len(found) <= limit:
            notices.append("the directory is too large to be searched whole; narrow the path")
        result = listing(shown, context, name="glob", nothing="no file matches", notices=notices)
        return replace(result, details={"count": len(shown)})


def _find(walk: Walk, pattern: Pattern, limit: int) -> list[str]:
    """Return the matching paths, and one more than the limit where there is one."""
    found: list[str] = []
    for path in walk.files():
        if pattern.matches(path):
            found.append(path)
        if len(found) > limit:
            break
    return found
