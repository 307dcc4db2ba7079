"""Session logs while they grow: raw or zstd, each byte read once."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_replay.exceptions import ReplayError
from llm_replay.session_log import SessionHeader, read_session_log, sort_logs

NAMES = ("session.jsonl", "session.jsonl.zstd")

Event = dict[str, Any]


class Plain:
    """Bytes as they are, or, for zstd, as they were: in frames that may be cut anywhere."""

    def __init__(self, *, compressed: bool) -> None:
        self._compressed = compressed
        self._frame: Any = None

    def decode(self, data: bytes) -> bytes:
        """Return what `data` adds to the text.

        Raises:
            ValueError: It is no zstd.
        """
        if not self._compressed:
            return data
        pieces = []
        while data:
            if self._frame is None or self._frame.eof:
                self._frame = zstd().ZstdDecompressor()
            try:
                pieces.append(self._frame.decompress(data))
            except zstd().ZstdError as error:
                raise ValueError(str(error)) from None
            data = self._frame.unused_data if self._frame.eof else b""
        return b"".join(pieces)


def zstd() -> Any:  # noqa: ANN401  a module
    """Return the zstd module; imported only where a log is compressed."""
    if sys.version_info >= (3, 14):
        from compression import zstd as module  # noqa: PLC0415  rare, and a moment to import
    else:
        from backports import zstd as module  # noqa: PLC0415  as above
    return module


def find_logs(root: Path) -> Iterator[Path]:
    """Yield every session log below the sessions root: a pipe of that name would never end."""
    for directory, _, names in os.walk(root):
        yield from (
            Path(directory, name)
            for name in NAMES
            if name in names and Path(directory, name).is_file()
        )


@dataclass(slots=True)
class _Tail:
    """One log, read so far."""

    path: Path
    plain: Plain
    header: SessionHeader | None = None
    events: list[Event] = field(default_factory=list)
    position: int = 0
    first: bytes = b""
    rest: bytes = b""

    def read(self) -> None:
        """Take in what was added; an unfinished last line waits."""
        with self.path.open("rb") as file:
            file.seek(self.position)
            data = file.read()
        if not data:
            return
        self.position += len(data)
        whole, end, self.rest = (self.rest + self.plain.decode(data)).rpartition(b"\n")
        if not end:
            return
        if self.header is None:
            self.first, _, whole = whole.partition(b"\n")
        log = read_session_log(self.first + b"\n" + whole, name=self.path.name)
        self.header = log.header
        self.events += log.events


@dataclass(slots=True)
class LogTails:
    """The logs below a sessions root, as far as they are written by now."""

    root: Path
    _tails: dict[Path, _Tail] = field(default_factory=dict)

    def events(self, session: str) -> Sequence[Event]:
        """Return the events of a session; none if it has no log yet."""
        for header, tail in self._known():
            if header.id == session:
                return tail.events
        return ()

    def children(self, session: str) -> Sequence[Sequence[Event]]:
        """Return the events of a session's children, in order of lineage."""
        found = [(h, tail) for h, tail in self._known() if h.parent_session == session]
        order = sort_logs([header for header, _ in found])
        return [found[place][1].events for place in order]

    def _known(self) -> list[tuple[SessionHeader, _Tail]]:
        for path in find_logs(self.root):
            if path not in self._tails:
                compressed = path.suffix == ".zstd"
                self._tails[path] = _Tail(path, Plain(compressed=compressed))
        known = []
        for tail in self._tails.values():
            # What is no log is judged at the harvest, where it can be told whole.
            with contextlib.suppress(ReplayError, OSError, ValueError):
                tail.read()
            if tail.header is not None:
                known.append((tail.header, tail))
        return known
