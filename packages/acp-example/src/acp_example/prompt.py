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


def system_prompt(
    *, cwd: str, tools: Collection[str], prompt: str | None = None, instructions: str = ""
) -> str:
    """Return what every model call of a session begins with.

    `prompt` stands in place of the built-in text, `{cwd}` in it for the working directory. The
    built-in one speaks of no absent tool. `instructions` come last.
    """
    text = _built_in(cwd, tools) if prompt is None else f"{prompt.strip()}\n".replace("{cwd}", cwd)
    return f"{text}\n{instructions.strip()}\n" if instructions.strip() else text


def _built_in(cwd: str, tools: Collection[str]) -> str:
    with_tools = " with the tools you are given" if tools else ""
    said = [line for needed, line in _LINES if tools and needed.issubset(tools)]
    lines = "".join(f"- {line}\n" for line in [*said, _LAST])
    return f"You are a coding agent. You work in the directory {cwd}{with_tools}.\n\n{lines}"
