"""Appending a session's events to its log file, in each of its four forms."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from acp_example import zstd
from llm_replay.jsonl import dump_line
from llm_replay.packing import pack_events

Layout = Literal["plain", "packed"]
Compression = Literal["none", "zstd"]

SUFFIXES: Final[Mapping[Compression, str]] = {"none": "", "zstd": ".zstd"}


class Sink(Protocol):
    """Where the bytes of a log go."""

    def write(self, data: bytes) -> None:
        """Append bytes; they have left the process when this returns."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class RawSink:
    """Appends bytes to a file as they are."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes) -> None:
        """Append bytes, unbuffered."""
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


class ZstdSink:
    """Appends bytes to one compressed frame, flushed after each write.

    A file that is cut off decodes up to its last whole write. An earlier frame that nobody
    finished is finished first.
    """

    def __init__(self, path: Path) -> None:
        self._raw = RawSink(path)
        self._frame = zstd.compressor()

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._raw.write(self._frame.compress(data, mode=self._frame.FLUSH_BLOCK))

    def close(self) -> None:
        """End the frame and let go of the file."""
        self._raw.write(self._frame.flush(mode=self._frame.FLUSH_FRAME))
        self._raw.close()


class LogWriter:
    """Appends events, one line each, flushed; in packed layout a run of deltas is one line.

    A run waits in memory for its end. Whatever else is written, and the end of a turn, ends it.
    """

    def __init__(self, sink: Sink, layout: Layout = "plain") -> None:
        self._sink = sink
        self._packed = layout == "packed"
        self._run: list[dict[str, Any]] = []
        self._closed = False

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event, or the header."""
        if self._packed and event["type"] == "assistant/chunk":
            self._run.append(dict(event))
            return
        self.flush()
        self._sink.write(dump_line(dict(event)))

    def flush(self) -> None:
        """Write the run that waits."""
        if self._run:
            rows, self._run = pack_events(self._run), []
            for row in rows:
                self._sink.write(dump_line(row))

    def close(self) -> None:
        """Write what waits and let go of the file; the second time does nothing."""
        if not self._closed:
            self._closed = True
            self.flush()
            self._sink.close()
