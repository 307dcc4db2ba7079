"""The tool that keeps a plan which the client can show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_example.tools import ToolContext, ToolResult, ToolSpec
from acp_example.tools.schema import object_of, string

_STATUSES: Final = ("pending", "in_progress", "completed")
_PRIORITIES: Final = ("high", "medium", "low")


def _title(_given: Mapping[str, Any]) -> str:
    return "Update the plan"


class Todo:
    """Replaces the plan as a whole."""

    spec = ToolSpec(
        name="todo",
        description=(
            "Write down the plan for a task of several steps, and keep it up to date. "
            "Each call replaces the whole list; one item at a time is in_progress."
        ),
        schema=object_of(
            {
                "items": {
                    "type": "array",
                    "description": "The whole plan, in order.",
                    "items": object_of(
                        {
                            "content": string("What is to be done."),
                            "status": {"type": "string", "enum": list(_STATUSES)},
                            "priority": {"type": "string", "enum": list(_PRIORITIES)},
                        },
                        required=["content", "status"],
                    ),
                }
            },
            required=["items"],
        ),
        kind="think",
        mode="exclusive",
        path_policy="none",
        timeout_s=5,
        annotations={"idempotentHint": True},
        title=_title,
    )

    async def run(self, arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        """Take in the new plan."""
        items: Sequence[Mapping[str, str]] = arguments["items"]
        plan = [
            {
                "content": item["content"],
                "priority": item.get("priority", "medium"),
                "status": item["status"],
            }
            for item in items
        ]
        counts = Counter(entry["status"] for entry in plan)
        summary = ", ".join(f"{counts[status]} {status}" for status in _STATUSES)
        length = "1 item" if len(plan) == 1 else f"{len(plan)} items"
        return ToolResult(text=f"The plan has {length}: {summary}", plan=plan)
