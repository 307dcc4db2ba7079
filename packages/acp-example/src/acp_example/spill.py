"""Where output goes that is too long for a model."""

import os
from dataclasses import dataclass
from pathlib import Path

from acp_example.tools import CallInfo


@dataclass(frozen=True, slots=True)
class SpillRoot:
    """Keeps whole outputs as files, named after the call's place and nothing else.

    A model sees these names, so they hold no chance and no time.
    """

    root: Path

    def write(self, call: CallInfo, name: str, text: str) -> Path:
        """Keep a whole text and return the path it is kept at."""
        folder = Path(os.path.realpath(self.root)) / call.lineage.replace("/", "-")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{call.position}-{name}"
        # In a folder that a session may write, a link could stand there.
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            file.write(text.encode("utf-8", "replace"))
        return path
