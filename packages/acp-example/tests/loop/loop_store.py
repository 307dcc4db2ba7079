"""A store in memory: making and removing directories is what tests cost."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp_example.log_file import LogWriter
from acp_example.store import Found, Store
from llm_replay.session_log import SessionLog, read_session_log


class MemorySink:
    """Keeps a log's bytes."""

    def __init__(self, data: bytearray) -> None:
        self.data = data

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self.data += data

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True)
class MemoryStore(Store):
    """A store whose logs are in memory: making and removing directories is what tests cost."""

    logs: dict[str, bytearray] = field(default_factory=dict)

    def claim(self) -> str:
        """Take the next lineage."""
        return str(1 + sum("/" not in lineage for lineage in self.logs))

    def create(self, header: Mapping[str, Any]) -> LogWriter:
        """Begin a log."""
        data = self.logs[header["lineage"]] = bytearray()
        writer = LogWriter(MemorySink(data), self.layout)
        writer.write(header)
        return writer

    def all(self) -> Iterator[Found]:
        """Yield every log."""
        for lineage, data in self.logs.items():
            yield Found(Path(lineage), json.loads(bytes(data).split(b"\n")[0]))

    def read(self, found: Found) -> SessionLog:
        """Read a log."""
        return read_session_log(bytes(self.logs[found.header["lineage"]]))

    def append(self, found: Found) -> LogWriter:
        """Go on with a log."""
        return LogWriter(MemorySink(self.logs[found.header["lineage"]]), self.layout)
