"""Searches files for a regular expression, as a process of its own.

A pattern can keep `re` busy for ever, and nothing in the same process could stop it then. Reads
one JSON object on stdin, writes one on stdout, and imports next to nothing.
"""

import json
import os
import re
import signal
import sys
from typing import Any

if __name__ == "__main__":  # in a process of its own, which knows the standard library alone
    sys.path.append(__file__.rsplit("/", 3)[0])

from acp_example.nofollow import open_real

SIZE_LIMIT = 4 * 1024 * 1024
LINE_LIMIT = 400
LIFETIME_S = 60


def search(query: dict[str, Any]) -> dict[str, Any]:
    """Return the matching lines, file by file in the order given, up to the limit.

    `files` are pairs of where a file is and how to call it. Files that are binary, too large or
    unreadable are passed over.
    """
    pattern = re.compile(query["pattern"], re.IGNORECASE if query["ignoreCase"] else 0)
    matches: list[dict[str, Any]] = []
    for path, shown in query["files"]:
        text = _text(path)
        for number, line in enumerate(text.split("\n") if text else (), start=1):
            if not pattern.search(line.removesuffix("\r")):
                continue
            if len(matches) == query["limit"]:
                return {"matches": matches, "more": True}
            matches.append({"path": shown, "line": number, "text": _cut(line.removesuffix("\r"))})
    return {"matches": matches, "more": False}


def main() -> None:
    """Answer one query, and end by itself should nobody be left to end it."""
    signal.alarm(LIFETIME_S)
    query = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(search(query)))


def _text(path: str) -> str:
    try:
        # Should a pipe have come in its place, nobody waits for its other end.
        with open(open_real(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123  a descriptor
            data = file.read(SIZE_LIMIT + 1)
    except OSError:
        return ""
    if len(data) > SIZE_LIMIT or b"\0" in data[:8192]:
        return ""
    return data.removesuffix(b"\n").decode("utf-8", "replace")


def _cut(line: str) -> str:
    rest = len(line) - LINE_LIMIT
    return line if rest <= 0 else f"{line[:LINE_LIMIT]} [{rest} more characters in this line]"


if __name__ == "__main__":
    main()
