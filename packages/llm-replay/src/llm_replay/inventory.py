"""Which logs a path means: a file is itself, a directory is a scenario."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llm_replay.exceptions import ScriptError

_NUMBER = re.compile(r"\.[1-9][0-9]*")
OVERRIDE = "replay.override.json"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The logs of a scenario in order of their numbers, and its sidecar where it has one."""

    logs: list[Path]
    override: Path | None = None


def inventory_of(path: Path) -> Inventory:
    """Return what there is at a path.

    Raises:
        ScriptError: A directory in which a log is missing.
    """
    if not path.is_dir():
        return Inventory([path])
    logs = dict(_numbered(path.glob("session*.jsonl")))
    override = path / OVERRIDE if (path / OVERRIDE).exists() else None
    for number in range(max(logs, default=-1 if override else 0) + 1):
        if number not in logs:
            name = f"session.{number}.jsonl" if number else "session.jsonl"
            raise ScriptError(
                where=str(path),
                what=f"there is no {name} in this directory",
                hint="name a log, or a directory with session.jsonl, session.1.jsonl, …",
            )
    return Inventory([logs[number] for number in sorted(logs)], override)


def _numbered(paths: Iterable[Path]) -> Iterable[tuple[int, Path]]:
    for path in paths:
        number = path.name.removeprefix("session").removesuffix(".jsonl")
        if not number:
            yield 0, path
        elif _NUMBER.fullmatch(number):
            yield int(number[1:]), path
