"""The `.env` file beside suite.toml: names and values, read in record mode only. No I/O."""

import re

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", re.ASCII)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a `.env` file; the last of two lines wins.

    Raises:
        ValueError: A line is none, with its number; its content stays unsaid.
    """
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise ValueError(f"line {number} is not NAME=VALUE")
        found[match[1]] = _value(match[2], number)
    return found


def _value(text: str, number: int) -> str:
    if text.startswith('"'):
        match = _DOUBLE.fullmatch(text)
        if match is not None:
            return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[1])
    elif text.startswith("'"):
        match = _SINGLE.fullmatch(text)
        if match is not None:
            return match[1]
    else:
        return re.split(r"\s#", f" {text}", maxsplit=1)[0].strip()
    raise ValueError(f"line {number} has a quote that doesn't end")
