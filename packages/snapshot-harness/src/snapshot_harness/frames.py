"""The agent's stdout, cut into frames; whatever is no frame is impure. No I/O."""

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from snapshot_harness.json_value import finite

QUOTED = 200
_LONG_NUMBER = re.compile(rb"\d{19}")


class Impurity(Exception):  # noqa: N818  a finding, which the shell turns into the agent's error
    """A line on stdout is no JSON object."""

    def __init__(self, *, line: int, text: bytes, what: str) -> None:
        self.line = line
        self.text = text
        self.what = what
        shown = text[:QUOTED].decode("utf-8", "backslashreplace")
        more = f" … ({len(text)} bytes)" if len(text) > QUOTED else ""
        super().__init__(f"line {line} of the agent's stdout {what}: {shown!r}{more}")


@dataclass(frozen=True, slots=True)
class Frame:
    """One JSON object on one line."""

    line: int
    value: dict[str, Any]


class LineFramer:
    """Cut a byte stream into frames.

    Feed it whatever the pipe gave; it keeps the unfinished rest for next time.
    """

    def __init__(self, *, limit: int = 256 * 1024 * 1024) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._line = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Return every frame that `data` completes, in order.

        Raises:
            Impurity: A line is no JSON object, or never ends.
        """
        # Only new bytes are searched: a 10 MB frame comes in 160 pieces.
        end = data.rfind(b"\n")
        if end < 0:
            self._rest += data
            if len(self._rest) > self._limit:
                raise Impurity(line=self._line + 1, text=bytes(self._rest), what="never ends")
            return []
        whole = bytes(self._rest) + data[:end]
        self._rest = bytearray(data[end + 1 :])
        frames = []
        for text in whole.split(b"\n"):
            self._line += 1
            if text.strip():
                frames.append(Frame(self._line, self._parse(text)))
        return frames

    def end(self) -> None:
        """Take in the end of the stream.

        Raises:
            Impurity: The last line has no end.
        """
        if self._rest.strip():
            what = "was cut before its end"
            raise Impurity(line=self._line + 1, text=bytes(self._rest), what=what)

    def _parse(self, text: bytes) -> dict[str, Any]:
        try:
            value = parse(text)
        except ValueError:
            raise Impurity(line=self._line, text=text, what="is not JSON") from None
        if not isinstance(value, dict):
            raise Impurity(line=self._line, text=text, what="is JSON, but no object")
        return value


def parse(text: bytes) -> object:
    """Parse one JSON text; what orjson refuses or bends, the standard library reads exactly.

    Raises:
        ValueError: It is not JSON.
    """
    # An integer beyond 64 bits would come back from orjson as a float.
    if _LONG_NUMBER.search(text) is None:
        try:
            value: object = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # perhaps a lone surrogate: JSON, although no Unicode text can hold it
        else:
            return value
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode(value: object) -> bytes:
    """Return one line for the agent's stdin."""
    try:
        return orjson.dumps(value) + b"\n"
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
