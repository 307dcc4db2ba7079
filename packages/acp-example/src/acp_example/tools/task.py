"""The tool that hands a task to a subagent."""

from collections.abc import Mapping
from typing import Any

from acp_example.tools import ToolContext, ToolError, ToolResult, ToolSpec
from acp_example.tools.schema import name, object_of, text_of


def _title(given: Mapping[str, Any]) -> str:
    return f"Delegate: {text_of(given, 'description', 'a task')}"


class Task:
    """Gives a task to a subagent and returns its answer."""

    spec = ToolSpec(
        name="task",
        description=(
            "Give a task to a subagent, and get its final answer. Several calls of one answer "
            "work side by side. A spawned one starts from nothing, so the prompt must say all it "
            "needs; a forked one knows the conversation up to the last finished turn."
        ),
        schema=object_of(
            {
                "description": name("The task in three to five words, for people."),
                "prompt": name("What the subagent shall do, and what to answer."),
                "mode": {
                    "type": "string",
                    "enum": ["spawn", "fork"],
                    "description": "From nothing, or from this conversation; spawn by default.",
                },
            },
            required=["description", "prompt"],
        ),
        kind="think",
        mode="parallel",
        path_policy="none",
        timeout_s=None,
        annotations={"readOnlyHint": False, "openWorldHint": False},
        title=_title,
    )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run the subagent to its end."""
        if context.delegate is None:
            raise ToolError("DEPTH_LIMIT", "a subagent this deep can't have one of its own")
        return await context.delegate(context.call, arguments)
