"""The `[recorded]` table of a scenario.toml, and the rest of the file kept. No I/O."""

import json
import re
from collections.abc import Mapping

_TABLE = re.compile(r"^\[recorded\][^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.MULTILINE)


def with_recorded(text: str, facts: Mapping[str, str]) -> str:
    """Return the file's text with the table replaced, or added at its end."""
    lines = [f"{name} = {_quoted(value)}" for name, value in facts.items()]
    table = "\n".join(["[recorded]", *lines]) + "\n"
    match = _TABLE.search(text)
    if match is None:
        return f"{text.rstrip()}\n\n{table}"
    # What follows is another table: keep the blank line before it.
    rest = text[match.end() :]
    return text[: match.start()] + table + (f"\n{rest}" if rest else "")


def _quoted(value: str) -> str:
    """Return a TOML string; JSON's escapes are TOML's, but for the slash and surrogates."""
    return json.dumps(value, ensure_ascii=False)
