"""Reading one value out of a `.env` file."""

import re
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*
    (?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^#\n]*?))\s*(?:\#.*)?""",
    re.VERBOSE | re.ASCII,
)


def read_value(file: Path, name: str) -> str | None:
    """Return what a file says a variable is; None where it, or the file, says nothing.

    One variable is asked for by name and no other is looked at, let alone put into the
    environment. The last line that sets it counts.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = None
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and match["name"] == name:
            found = next(v for v in match.group("single", "double", "bare") if v is not None)
    return found
