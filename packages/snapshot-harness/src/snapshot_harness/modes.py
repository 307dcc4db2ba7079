"""What a run may touch. No I/O."""

import enum
from collections.abc import Mapping


class Mode(enum.StrEnum):
    """The three modes."""

    REPLAY = "replay"  # compares; no key, writes nothing that is tracked
    REFRESH = "refresh"  # no key; rewrites what follows from the committed scripts
    RECORD = "record"  # a live model; rewrites everything


def on_ci(environ: Mapping[str, str]) -> bool:
    """Tell whether this is continuous integration, where nobody would review what is written."""
    return environ.get("CI") in {"1", "true"}
