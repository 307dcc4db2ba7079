"""Session logs on disk: claiming a lineage, finding logs, reading them, opening them to append."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from acp_example import zstd
from acp_example.log_file import SUFFIXES, Compression, Layout, LogWriter, RawSink, Sink, ZstdSink
from llm_replay.exceptions import SessionLogError
from llm_replay.session_log import SessionLog, read_session_log

_NAME = "session.jsonl"
_HEADER_BYTES = 65_536
_TITLE = 80


@dataclass(frozen=True, slots=True)
class Found:
    """A log on disk, its header read."""

    path: Path
    header: Mapping[str, Any]

    @property
    def compressed(self) -> bool:
        """Whether it is a zstd file."""
        return self.path.name != _NAME


@dataclass(frozen=True, slots=True)
class Store:
    """The sessions of one root directory: `<root>/<lineage, slashes as dashes>/session.jsonl`."""

    root: Path
    layout: Layout = "plain"
    compression: Compression = "none"

    def claim(self) -> str:
        """Take the next free lineage of a top-level session. It is never given out again."""
        claims = self.root / ".lineages"
        claims.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken = [int(entry.name) for entry in claims.iterdir() if entry.name.isdecimal()]
        number = max(taken, default=0) + 1
        while True:
            with suppress(FileExistsError):
                (claims / str(number)).touch(exist_ok=False)
                return str(number)
            number += 1

    def create(self, header: Mapping[str, Any]) -> LogWriter:
        """Begin the log of a new session."""
        folder = self.root / header["lineage"].replace("/", "-")
        folder.mkdir(mode=0o700, parents=True)
        path = folder / f"{_NAME}{SUFFIXES[self.compression]}"
        writer = LogWriter(_sink(path, compressed=self.compression == "zstd"), self.layout)
        writer.write(header)
        return writer

    def all(self) -> Iterator[Found]:
        """Yield every log whose header can be read, in no particular order."""
        for suffix in SUFFIXES.values():
            for path in self.root.glob(f"*/{_NAME}{suffix}"):
                header = _header(path)
                if header is not None:
                    yield Found(path, header)

    def find(self, session_id: str) -> Found | None:
        """Return the log of a session."""
        return next((log for log in self.all() if log.header.get("id") == session_id), None)

    def first_words(self, found: Found) -> str | None:
        """Return the beginning of what the user said first, as a title."""
        try:
            events = read_session_log(_whole_lines(_text(found))).events
        except (OSError, ValueError, SessionLogError):
            return None
        for event in events:
            if event["type"] == "user/message":
                text = " ".join(block.get("text", "") for block in event["data"]["content"])
                return " ".join(text.split())[:_TITLE] or None
        return None

    def read(self, found: Found) -> SessionLog:
        """Read a whole log. The end of a torn last write is left out.

        Raises:
            SessionLogError: A line is not what a log may contain, or events are missing.
        """
        log = read_session_log(_whole_lines(_text(found)), name=str(found.path))
        for place, event in enumerate(log.events):
            if event["seq"] != place:
                raise SessionLogError(
                    name=str(found.path),
                    line=log.lines[place],
                    what=f"event {event['seq']} stands where event {place} is due",
                    hint="restore the log from a copy; a log is only ever appended to",
                )
        return log

    def append(self, found: Found) -> LogWriter:
        """Open a log to go on with it, in the form it has; a torn end is cut off first."""
        data = found.path.read_bytes()
        if found.compressed:
            length, finished = zstd.whole(data)
            os.truncate(found.path, length)
            if not finished:
                sink = RawSink(found.path)
                sink.write(zstd.END_OF_FRAME)
                sink.close()
        else:
            os.truncate(found.path, len(_whole_lines(data)))
        return LogWriter(_sink(found.path, compressed=found.compressed), self.layout)


def _sink(path: Path, *, compressed: bool) -> Sink:
    return ZstdSink(path) if compressed else RawSink(path)


def _text(found: Found) -> bytes:
    data = found.path.read_bytes()
    return zstd.decompress(data) if found.compressed else data


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _header(path: Path) -> dict[str, Any] | None:
    """Return a log's header; None where it is torn, or no header of ours."""
    try:
        with path.open("rb") as file:
            data = file.read(_HEADER_BYTES)
        text = data if path.name == _NAME else zstd.decompress(data)
        header = orjson.loads(text[: text.index(b"\n")])
    except (OSError, ValueError):
        return None
    known = isinstance(header, dict) and header.get("type") == "session" and "lineage" in header
    return header if known else None
