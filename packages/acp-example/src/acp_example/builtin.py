"""The built-in tools, as a plugin."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from acp_example.plugins import Context

__all__ = ["Config", "apply", "inject", "name"]

name = "tools"
inject = ("tools",)

Name = Literal["bash", "edit", "glob", "grep", "read", "task", "todo", "write"]

_TOOLS: Final[Mapping[Name, str]] = {
    "bash": "Bash",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "read": "Read",
    "task": "Task",
    "todo": "Todo",
    "write": "Write",
}


class Config(BaseModel):
    """Which of the tools a model gets."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: Sequence[Name] = tuple(_TOOLS)


def apply(context: Context, config: Config) -> Callable[[], None]:
    """Register the enabled tools; what is returned takes them away again."""
    registry = context.service("tools")
    undo = []
    for tool in config.enabled:
        # Each is imported only where it is used: imports are what a start costs.
        module = importlib.import_module(f"acp_example.tools.{tool}")
        undo.append(registry.register(getattr(module, _TOOLS[tool])()))

    def dispose() -> None:
        for step in reversed(undo):
            step()

    return dispose
