"""The tool that writes a whole file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acp_example.exceptions import ToolError
from acp_example.tools import Diff, ToolContext, ToolResult, ToolSpec
from acp_example.tools.files import TEXT_LIMIT, opened, replace_file, size_of
from acp_example.tools.schema import name, object_of, string, text_of


def _title(given: Mapping[str, Any]) -> str:
    return f"Write {text_of(given, 'path', 'a file')}"


def _locations(given: Mapping[str, Any]) -> list[str]:
    path = text_of(given, "path")
    return [path] if path else []


class Write:
    """Creates a file, or replaces what is in it."""

    spec = ToolSpec(
        name="write",
        description=(
            "Write a whole file, replacing what was there. Missing directories are made. "
            "To change a part of a file, use edit."
        ),
        schema=object_of(
            {
                "path": name("The file, relative to the working directory or absolute."),
                "content": string("All of the file's text."),
            },
            required=["path", "content"],
        ),
        kind="edit",
        mode="exclusive",
        path_policy="write",
        timeout_s=30,
        annotations={"destructiveHint": True, "idempotentHint": True},
        title=_title,
        locations=_locations,
    )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Write the file."""
        content: str = arguments["content"]
        path = context.policy.resolve(arguments["path"], access="write")
        shown = context.policy.display(path)
        old = _shown_before(path, shown)
        replace_file(path, content, shown)
        context.read_files.add(path)
        size = len(content.encode())
        return ToolResult(
            text=f"{'Created' if old is None else 'Replaced'} {shown} ({size} bytes)",
            diffs=[Diff(path=str(path), old=old, new=content)],
            details={"path": shown, "bytes": size},
        )


def _shown_before(path: Path, shown: str) -> str | None:
    """Return what a diff shows of the file that is about to be replaced; None if there is none."""
    try:
        with opened(path, shown) as file:
            too_large = size_of(file) > TEXT_LIMIT
            return "" if too_large else file.read().decode("utf-8", "replace")
    except ToolError as error:
        if error.code == "PATH_NOT_FOUND":
            return None
        raise
