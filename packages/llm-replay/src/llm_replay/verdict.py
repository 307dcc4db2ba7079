"""What replay served, told out of band: one line per fact, each written at once.

The lines are described by `verdict.schema.json` beside this file, so that an agent in another
language can write them too.
"""

import json
import os
import secrets
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from llm_replay.exceptions import ConfigError, Problem, VerdictError

VERDICT_SCHEMA = Path(__file__).with_name("verdict.schema.json")
VERDICT_VERSION = 1

Fact: TypeAlias = dict[str, Any]

_written_here: set[str] = set()
"""The files of this process, by name: what they say of a disposed installation is history."""


@dataclass(frozen=True, slots=True)
class VerdictFile:
    """The facts of one installation, in the order in which they happened."""

    name: str
    facts: list[Fact]


class VerdictWriter:
    """Write the facts of one installation; without a directory, write nothing.

    Each fact is one unbuffered write, so that a process that is killed leaves the truth. The
    file stays open as long as a stream may have something to tell.
    """

    def __init__(self, directory: Path | None) -> None:
        self._file = -1
        if directory is not None:
            self._file = _create(directory)
            weakref.finalize(self, os.close, self._file).atexit = False

    def installed(self, scripts: Sequence[tuple[str, int]]) -> None:
        """Tell which scripts there are: the base name of each file, and its number of calls."""
        listed = [{"file": file, "calls": calls} for file, calls in scripts]
        self._write({"fact": "installed", "version": VERDICT_VERSION, "scripts": listed})

    def bound(self, script: int, session: str | None, lineage: str | None) -> None:
        """Tell which live session takes a script."""
        fact: Fact = {"fact": "bound", "script": script, "session": session}
        self._write(fact if lineage is None else {**fact, "lineage": lineage})

    def call(self, script: int, call: int) -> None:
        """Tell that a stream was asked for, and the cursor moved."""
        self._write({"fact": "call", "script": script, "call": call})

    def hanging(self, script: int, call: int) -> None:
        """Tell that the consumer has handled a hang's last chunk, and waits."""
        self._write({"fact": "hanging", "script": script, "call": call})

    def served(self, script: int, call: int) -> None:
        """Tell that nothing of a call is left to be served."""
        self._write({"fact": "served", "script": script, "call": call})

    def fault(
        self, kind: str, message: str, *, script: int | None = None, call: int | None = None
    ) -> None:
        """Tell what the fixture and the run disagree about."""
        fact: Fact = {"fact": "fault", "kind": kind}
        if script is not None:
            fact["script"] = script
        if call is not None:
            fact["call"] = call
        self._write({**fact, "message": message})

    def _write(self, fact: Fact) -> None:
        if self._file >= 0:
            os.write(self._file, _line(fact))


def read_verdict(directory: Path) -> list[VerdictFile]:
    """Return what each installation told, in order of the files' names.

    A last line without a line feed is no fact: its writer was killed. A directory that isn't
    there has no files.

    Raises:
        VerdictError: A whole line is no fact.
    """
    paths = sorted(directory.glob("*.jsonl"))
    return [VerdictFile(path.name, _facts(path)) for path in paths]


def written_by_others(directory: Path) -> list[VerdictFile]:
    """Return what the installations of other processes told."""
    return [file for file in read_verdict(directory) if file.name not in _written_here]


def _create(directory: Path) -> int:
    name = f"{os.getpid()}-{secrets.token_hex(8)}.jsonl"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
    try:
        file = os.open(directory / name, flags, 0o644)
    except OSError as error:
        problem = Problem("DSH_SNAPSHOT_VERDICT_DIR", f"can't be written: {error.strerror}")
        hint = "make the directory first, or set no DSH_SNAPSHOT_VERDICT_DIR"
        raise ConfigError(where=str(directory), problems=[problem], hint=hint) from None
    _written_here.add(name)
    return file


def _line(fact: Fact) -> bytes:
    try:
        return orjson.dumps(fact, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a lone surrogate, which only the standard library writes
        return json.dumps(fact, separators=(",", ":")).encode() + b"\n"


def _facts(path: Path) -> list[Fact]:
    lines = path.read_bytes().split(b"\n")
    return [_fact(path, number, line) for number, line in enumerate(lines[:-1], start=1)]


def _fact(path: Path, number: int, line: bytes) -> Fact:
    try:
        fact = json.loads(line)
    except ValueError:
        fact = None
    if not isinstance(fact, dict) or "fact" not in fact:
        raise VerdictError(file=str(path), line=number)
    return fact
