"""The `[recorded]` table of a scenario.toml, and the rest of the file kept. No I/O."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence

_HEADER = re.compile(r"\s*\[\s*recorded\s*\]\s*(?:#.*)?")


def with_recorded(text: str, facts: Mapping[str, str]) -> str:
    """Return the file's text with the table replaced, or added at its end.

    Raises:
        ValueError: The file says it in another form, which can't be replaced by lines.
    """
    known = {name: value.encode(errors="replace").decode() for name, value in facts.items()}
    lines = [f"{name} = {_quoted(value)}" for name, value in known.items()]
    table = "\n".join(["[recorded]", *lines]) + "\n"
    written = _replaced(text.rstrip().split("\n"), table)
    if _value(written) != {**_value(text), "recorded": known}:
        raise ValueError("`recorded` is no table of its own")
    return written


def _replaced(lines: Sequence[str], table: str) -> str:
    start = next((place for place, line in enumerate(lines) if _HEADER.fullmatch(line)), None)
    if start is None:
        return "\n".join([*lines, "", table])
    end = start + 1
    while end < len(lines) and not lines[end].lstrip().startswith("["):
        end += 1
    if end < len(lines):
        # What stands above another table is about that one.
        while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
            end -= 1
    head = "".join(f"{line}\n" for line in lines[:start])
    rest = "\n".join(lines[end:]).lstrip("\n")
    return head + table + (f"\n{rest}\n" if rest else "")


def _value(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _quoted(value: str) -> str:
    """Return a TOML string: JSON's spelling, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
