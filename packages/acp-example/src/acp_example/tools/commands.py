"""Which commands only look, judged by their words alone. No I/O.

Whatever is not known to be harmless counts as harmful: this is a list of what is allowed, and a
reader of shell syntax that gives up early.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final, Literal

_SYNTAX: Final = re.compile(r"[\n\r;&<>`$(){}!*?\[\]~#\\]")
_READERS: Final = frozenset(
    {
        "basename",
        "cat",
        "cut",
        "dirname",
        "echo",
        "grep",
        "head",
        "ls",
        "nl",
        "printf",
        "pwd",
        "stat",
        "tail",
        "tr",
        "true",
        "false",
        "wc",
        "which",
    }
)


def review(arguments: Mapping[str, Any], mode: str) -> Literal["allow", "deny"] | None:
    """Judge a command: in a read-only session it must be harmless; elsewhere others decide."""
    if mode != "read-only":
        return None
    command = arguments.get("command")
    return "allow" if isinstance(command, str) and is_harmless(command) else "deny"


def is_harmless(command: str) -> bool:
    """Say whether a command is a pipeline of programs that only read below the workspace.

    Substitution, redirection, chaining, globs and quotes that never close are not analysed.
    """
    if _SYNTAX.search(command):
        return False
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return False
    stages: list[list[str]] = [[]]
    for word in words:
        if word.startswith("|"):
            if word != "|":
                return False
            stages.append([])
        else:
            stages[-1].append(word)
    return all(_only_reads(stage) for stage in stages)


def _only_reads(stage: list[str]) -> bool:
    return bool(stage) and stage[0] in _READERS and all(map(_stays_inside, stage[1:]))


def _stays_inside(word: str) -> bool:
    """Say whether an argument names nothing outside: options carry no path at all."""
    if word.startswith("-"):
        return "/" not in word and ".." not in word
    return not word.startswith("/") and ".." not in word.split("/")
