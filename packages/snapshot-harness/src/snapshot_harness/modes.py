"""What a run may touch. No I/O."""

import enum


class Mode(enum.StrEnum):
    """The three modes."""

    REPLAY = "replay"  # compares; no key, writes nothing that is tracked
    REFRESH = "refresh"  # no key; rewrites what follows from the committed scripts
    RECORD = "record"  # a live model; rewrites everything
