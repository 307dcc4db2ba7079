"""The files of a scenario directory: which there are, reading them, and their bytes to write."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from llm_replay.exceptions import ReplayError, SessionLogError
from llm_replay.jsonl import dump_line, loads
from llm_replay.override import Replacement, SessionOverride, parse_override
from llm_replay.session_log import SessionLog, dump_session_log, read_session_log
from snapshot_harness.atomic import Pending, pending, roll_forward, write_scenario
from snapshot_harness.exceptions import FixtureError, Problem
from snapshot_harness.json_value import Json
from snapshot_harness.normalize import NormalizedLog, foreign_roots
from snapshot_harness.order import Frame
from snapshot_harness.values import fingerprint

__all__ = [
    "Fixture",
    "Pending",
    "find_logs",
    "log_bytes",
    "log_name",
    "pending",
    "read_fixture",
    "roll_forward",
    "stable_lines",
    "transcript_bytes",
    "write_scenario",
]

SESSION = "session.jsonl"
TRANSCRIPT = "stdout.expected.jsonl"
OVERRIDE = "replay.override.json"
SYSTEM = "system-prompt.expected.md"
TOOLS = "tool-schemas.expected.json"
INPUT = "input.json"
SCENARIO = "scenario.toml"
WORKSPACE = "workspace"

_LOG = re.compile(r"session(?:\.([1-9]\d*))?\.jsonl", re.ASCII)
_ALL_CALLS = range(1, 2**53)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """What the repository holds of one scenario, read.

    `overridden` names, by the number of the log, the calls that the sidecar serves.
    """

    directory: Path
    logs: list[SessionLog]
    transcript: list[Frame]
    overridden: Mapping[int, Collection[int]] = field(default_factory=dict)

    @property
    def foreign(self) -> list[str]:
        """The working directories of literal logs, for normalizing the run beside them."""
        return foreign_roots(self.logs)


def read_fixture(directory: Path, *, overridden: bool = False, transcript: bool = True) -> Fixture:
    """Read the logs, the transcript and, where there is one, the sidecar of a scenario.

    Refresh writes the transcript, and so does without the old one.

    Raises:
        FixtureError: With every file that is missing or can't be read.
    """
    problems: list[Problem] = []
    left = pending(directory)
    if left is not None:
        problems.append(left.problem)
    logs = list(_read_logs(directory, problems))
    frames = _read_transcript(directory, problems) if transcript else []
    overrides = _read_override(directory, problems, len(logs)) if overridden else {}
    if problems:
        raise FixtureError(problems=problems)
    numbers = {place: overridden_calls(one) for place, one in overrides.items()}
    return Fixture(directory=directory, logs=logs, transcript=frames, overridden=numbers)


def read_overrides(directory: Path, sessions: int) -> dict[int, SessionOverride]:
    """Return what the sidecar says of each session, by the number of its file.

    Raises:
        FixtureError: It is missing, or says something impossible.
    """
    problems: list[Problem] = []
    overrides = _read_override(directory, problems, sessions)
    if problems:
        raise FixtureError(problems=problems)
    return overrides


def overridden_calls(override: SessionOverride) -> Collection[int]:
    """Return the numbers of a session's calls, from 1, that its override serves."""
    if isinstance(override, Replacement):
        return _ALL_CALLS
    return frozenset(place + 1 for place in override.by_place)


def find_logs(directory: Path) -> list[Path]:
    """Return a scenario's session logs by number, whether or not the numbers are whole."""
    found = []
    for entry in directory.iterdir():
        match = _LOG.fullmatch(entry.name)
        if match is not None and entry.is_file():
            found.append((int(match[1] or 0), entry))
    return [path for _, path in sorted(found)]


def log_name(number: int) -> str:
    """Return the name of a session's file by its place in the harvest."""
    return f"session.{number}.jsonl" if number else SESSION


def log_bytes(log: NormalizedLog, *, layout: Literal["plain", "packed"]) -> bytes:
    """Return a normalized log as its committed file."""
    events = [_with_envelope(event, place) for place, event in enumerate(log.events)]
    return dump_session_log(log.header, events, layout=layout, projected=True)


def transcript_bytes(frames: Sequence[Frame]) -> bytes:
    """Return a normalized transcript as its committed file."""
    return b"".join(dump_line(frame) for frame in frames)


def stable_lines(new: bytes, old: bytes | None) -> bytes:
    """Return `new` with each line that the old file has by value spelled as there.

    An agent may write the keys of an object in another order each time.
    """
    if old is None or new == old:
        return new
    spelled = {}
    for line in old.splitlines(keepends=True):
        value = _value(line)
        if value is not None and line.endswith(b"\n"):
            spelled[fingerprint(value)] = line
    return b"".join(
        spelled.get(fingerprint(_value(line)), line) for line in new.splitlines(keepends=True)
    )


def _value(line: bytes) -> Json:
    try:
        return loads(line, name="")
    except SessionLogError:
        return None


def _with_envelope(event: dict[str, Any], place: int) -> dict[str, Any]:
    """Give an event the envelope that packing counts on; writing takes it off again."""
    rest = {key: value for key, value in event.items() if key != "type"}
    head = {"type": event["type"]} if "type" in event else {}
    return {**head, "seq": place, "time": 0, **rest}


def _read_logs(directory: Path, problems: list[Problem]) -> Iterator[SessionLog]:
    paths = find_logs(directory)
    if not paths or paths[0].name != SESSION:
        problems.append(
            Problem(
                path=directory / SESSION,
                what="the file is missing",
                why="It is the model's script and the expected log.",
                hint="record the scenario, or write the file by hand",
            )
        )
    for path in paths:
        try:
            yield read_session_log(path.read_bytes(), name=path.name)
        except SessionLogError as error:
            problems.append(_unreadable(path, error))


def _unreadable(path: Path, error: SessionLogError) -> Problem:
    what = error.what if error.column is None else f"column {error.column}: {error.what}"
    hint = "refresh or record the scenario, or take the file from version control"
    return Problem(path=path, line=error.line, what=what, hint=hint)


def _read_transcript(directory: Path, problems: list[Problem]) -> list[Frame]:
    path = directory / TRANSCRIPT
    frames: list[Frame] = []
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        hint = "refresh the scenario: refresh writes it"
        problems.append(Problem(path=path, what="the file is missing", hint=hint))
        return frames
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            frame = loads(line, name=TRANSCRIPT, number=number)
        except SessionLogError as error:
            problems.append(_unreadable(path, error))
            continue
        if isinstance(frame, dict):
            frames.append(frame)
        else:
            what = "this line is not a JSON object"
            problems.append(Problem(path=path, line=number, what=what, hint="refresh the scenario"))
    return frames


def _read_override(
    directory: Path, problems: list[Problem], sessions: int
) -> dict[int, SessionOverride]:
    path = directory / OVERRIDE
    try:
        return parse_override(path.read_bytes(), where=OVERRIDE, sessions=sessions or None)
    except FileNotFoundError:
        hint = "write it, or say `overridden = false` in scenario.toml"
        problems.append(Problem(path=path, what="the file is missing", hint=hint))
    except ReplayError as error:
        problems.append(Problem(path=path, what=str(error)))
    return {}
