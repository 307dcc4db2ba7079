"""Where in a hand-written file a value stands: a line to click on. No I/O."""

import json
import re
from collections.abc import Sequence

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")

Part = str | int


def line_in_json(text: str, place: Sequence[Part]) -> int:
    """Return the line of the value at `place`, or of the nearest thing around it."""
    position = _skip(text, 0)
    for part in place:
        found = _member(text, position, part)
        if found is None:
            break
        position = found
    return text.count("\n", 0, position) + 1


def line_in_toml(text: str, place: Sequence[Part]) -> int | None:
    """Return the line that names the last key of `place`: a good guess, as TOML tells no places."""
    position, found = 0, None
    for part in place:
        if not isinstance(part, str):
            continue
        key = re.compile(rf"""^[\s\[]*["']?{re.escape(part)}["']?\s*[\]=.]""", re.MULTILINE)
        match = key.search(text, position)
        if match is not None:
            found = match.end()
            position = match.start()
    return None if found is None else text.count("\n", 0, found) + 1


def _member(text: str, position: int, part: Part) -> int | None:
    """Return where the member `part` of the array or object at `position` begins."""
    opened = text[position]
    if opened != ("{" if isinstance(part, str) else "["):
        return None
    position = _skip(text, position + 1)
    index = 0
    while text[position] not in "]}":
        key: Part = index
        if opened == "{":
            key, position = _DECODER.raw_decode(text, position)
            position = _skip(text, _skip(text, position) + 1)
        if key == part:
            return position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
        index += 1
    return None


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()
