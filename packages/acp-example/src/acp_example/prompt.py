"""The system prompt. No I/O."""

from collections.abc import Collection
from typing import Final

_LINES: Final = (
    (
        {"read", "edit"},
        (
            "Look before you change anything: read a file before you edit it, search before you "
            "assume."
        ),
    ),
    (
        set[str](),
        "Run independent calls together in one answer; calls of one answer may run side by side.",
    ),
    ({"bash"}, "Each command starts in a fresh shell. Prefer commands whose output is short."),
    (
        set[str](),
        (
            'A result that begins with "Error [" says what went wrong. Correct the call or take '
            "another way; do not repeat a call that was rejected."
        ),
    ),
    (
        {"todo"},
        "Keep a plan with the todo tool when a task has several parts, and keep it up to date.",
    ),
)
"""What is said of tools, and which ones must be there for it to be true."""

_LAST: Final = (
    "Say what you did and found in a few sentences when you are done. Do not invent results."
)


def system_prompt(*, cwd: str, tools: Collection[str], instructions: str = "") -> str:
    """Return what every model call of a session begins with; it speaks of no absent tool."""
    with_tools = " with the tools you are given" if tools else ""
    said = [line for needed, line in _LINES if tools and needed.issubset(tools)]
    lines = "".join(f"- {line}\n" for line in [*said, _LAST])
    text = f"You are a coding agent. You work in the directory {cwd}{with_tools}.\n\n{lines}"
    return f"{text}\n{instructions.strip()}\n" if instructions.strip() else text
