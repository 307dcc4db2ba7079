"""The tool that replaces exact pieces of a file, all of them or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from acp_example.exceptions import ToolError
from acp_example.tools import Diff, ToolContext, ToolResult, ToolSpec
from acp_example.tools.files import read_text, replace_file
from acp_example.tools.schema import name, object_of, string, text_of


def _title(given: Mapping[str, Any]) -> str:
    return f"Edit {text_of(given, 'path', 'a file')}"


def _locations(given: Mapping[str, Any]) -> list[str]:
    path = text_of(given, "path")
    return [path] if path else []


class Edit:
    """Changes a file that the model has read."""

    spec = ToolSpec(
        name="edit",
        description=(
            "Replace exact pieces of a text file that was read before. Every old_text must occur "
            "exactly once, so give enough of what stands around it. If one edit does not fit, "
            "none is made."
        ),
        schema=object_of(
            {
                "path": name("The file, relative to the working directory or absolute."),
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "description": "The replacements, all found in the file as it is now.",
                    "items": object_of(
                        {
                            "old_text": string("What is there now, exactly, line ends included."),
                            "new_text": string("What shall be there."),
                        },
                        required=["old_text", "new_text"],
                    ),
                },
            },
            required=["path", "edits"],
        ),
        kind="edit",
        mode="exclusive",
        path_policy="write",
        timeout_s=30,
        annotations={"destructiveHint": True},
        title=_title,
        locations=_locations,
    )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Make the edits."""
        edits: Sequence[Mapping[str, str]] = arguments["edits"]
        path = context.policy.resolve(arguments["path"], access="write")
        shown = context.policy.display(path)
        if path not in context.read_files:
            raise ToolError("EDIT_REQUIRES_READ", f"read {shown!r} first, then edit it")
        old = read_text(path, shown)
        new = apply_edits(old, edits, shown)
        replace_file(path, new, shown)
        count = "1 replacement" if len(edits) == 1 else f"{len(edits)} replacements"
        return ToolResult(
            text=f"Edited {shown} ({count})",
            diffs=[Diff(path=str(path), old=old, new=new)],
            details={"path": shown, "replacements": len(edits)},
        )


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    end: int
    number: int
    new: str


def apply_edits(text: str, edits: Sequence[Mapping[str, str]], shown: str) -> str:
    """Return the text with every edit made; each was looked for in the text as it came.

    Raises:
        ToolError: One is not there, is there more than once, or touches another.
    """
    spans = sorted(
        _find(text, edit, number=number, shown=shown) for number, edit in enumerate(edits, start=1)
    )
    for first, second in pairwise(spans):
        if second.start < first.end:
            one, other = sorted((first.number, second.number))
            raise ToolError(
                "EDIT_OVERLAP",
                f"edits {one} and {other} of {shown!r} overlap: make one edit of them",
            )
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += [text[end : span.start], span.new]
        end = span.end
    return "".join([*pieces, text[end:]])


def _find(text: str, edit: Mapping[str, str], *, number: int, shown: str) -> _Span:
    old, new = edit["old_text"], edit["new_text"]
    if not old or old == new:
        why = "its old_text is empty" if not old else "it changes nothing"
        raise ToolError("VALIDATION_ERROR", f"edit {number} of {shown!r}: {why}")
    start = text.find(old)
    if start < 0:
        hint = "; the lines of this file end in CRLF" if "\r\n" in text and "\n" in old else ""
        raise ToolError(
            "EDIT_TARGET_NOT_FOUND", f"edit {number}: its old_text is not in {shown!r}{hint}"
        )
    # Occurrences may overlap, so the next search starts one character further on.
    if text.find(old, start + 1) >= 0:
        raise ToolError(
            "EDIT_TARGET_NOT_UNIQUE",
            f"edit {number}: its old_text is in {shown!r} more than once; "
            "give more of what stands around it",
        )
    return _Span(start, start + len(old), number, new)
