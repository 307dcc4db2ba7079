"""The override sidecar: hand-written entries in place of derived ones. No I/O.

Three forms: a list of entries replaces the script of the primary session;
`{"patches": […]}` changes single calls of it; `{"sessions": {"0": …, "1": …}}` holds
either of these for each session by the number of its file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from llm_replay.chunks import CHUNK_TYPES, PARTIAL
from llm_replay.derive import DerivedCall, ReplayEntry
from llm_replay.exceptions import OverrideError, Problem, SessionLogError
from llm_replay.jsonl import loads
from llm_replay.packing import is_safe_integer
from llm_replay.values import shown


class ReplayOverridePatch(TypedDict):
    """One call served otherwise than recorded; `at` counts from 0."""

    at: int
    entry: ReplayEntry


class ReplayOverridePatches(TypedDict):
    """Changes to single calls of one session."""

    patches: list[ReplayOverridePatch]


class ReplayOverrideSessions(TypedDict):
    """Overrides by the number of the session's file, `"0"` the primary."""

    sessions: dict[str, list[ReplayEntry] | ReplayOverridePatches]


ReplayOverrideDoc = list[ReplayEntry] | ReplayOverridePatches | ReplayOverrideSessions


@dataclass(frozen=True, slots=True)
class Replacement:
    """All entries of a session."""

    entries: list[ReplayEntry]


@dataclass(frozen=True, slots=True)
class Patches:
    """Some entries of a session, by the place of the call; the rest is derived."""

    by_place: Mapping[int, ReplayEntry]


SessionOverride = Replacement | Patches

_KEYS = {
    "chunks": ({"kind", "chunks"}, set[str]()),
    "throw": ({"kind", "chunks", "message", "code"}, set[str]()),
    "hang": ({"kind"}, {"readyFile", "chunks"}),
}
_ORDER = ("kind", "chunks", "message", "code", "readyFile")
_FILE_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")
_FORMS = 'must be a list of entries, {"patches": […]} or {"sessions": {"1": …}}'


def parse_override(
    data: bytes | str, *, where: str, sessions: int | None = None
) -> dict[int, SessionOverride]:
    """Read a whole sidecar: what it says of each session, by the number of its file.

    `sessions` is how many there are, where the caller knows.

    Raises:
        OverrideError: With every problem, each with its place.
    """
    text = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    try:
        document = loads(text, name=where)
    except SessionLogError as error:
        raise OverrideError(where=where, problems=[_syntax(error)]) from None
    reader = _Reader()
    found = dict(reader.document(document, sessions))
    if reader.problems:
        raise OverrideError(where=where, problems=reader.problems)
    return found


def apply_override(
    calls: Sequence[DerivedCall],
    override: SessionOverride | None,
    *,
    where: str = "override",
    session: int = 0,
) -> list[ReplayEntry | None]:
    """Return the entries of a session, `None` for a hole that no patch fills.

    Errors name a `session` that is not the primary one, by the number of its file.

    Raises:
        OverrideError: A patch stands behind the end of the script.
    """
    if isinstance(override, Replacement):
        return list(override.entries)
    entries = [call.entry for call in calls]
    if override is None:
        return entries
    past = [place for place in sorted(override.by_place) if place > len(calls)]
    if past:
        count = f"{len(calls)} call{'' if len(calls) == 1 else 's'}"
        what = f"the script has {count}; {len(calls)} appends, more is past the end"
        which = f"session {session}, " if session else ""
        raise OverrideError(
            where=where,
            problems=[Problem(f"{which}patch at {place}", what) for place in past],
            hint="see `llm-replay show` for the calls of a log",
        )
    for place, entry in override.by_place.items():
        entries[place : place + 1] = [entry]
    return entries


def repeats_log(override: SessionOverride, calls: Sequence[DerivedCall]) -> bool:
    """Say whether a session's override only says what its log derives to anyway."""
    if isinstance(override, Replacement):
        derived = [_explicit(call.entry) for call in calls]
        return derived == [_explicit(entry) for entry in override.entries]
    return all(
        place < len(calls) and _explicit(calls[place].entry) == _explicit(entry)
        for place, entry in override.by_place.items()
    )


def _syntax(error: SessionLogError) -> Problem:
    return Problem(f"line {error.line}, column {error.column}", error.what)


def _explicit(entry: ReplayEntry | None) -> ReplayEntry | None:
    """Give a hang the chunks that it serves without saying so."""
    if entry is not None and entry["kind"] == "hang":
        return {"chunks": list(PARTIAL), **entry}
    return entry


class _Reader:
    """One pass over a sidecar that keeps every problem."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def document(
        self, value: object, sessions: int | None
    ) -> Iterator[tuple[int, SessionOverride]]:
        """Yield what each session gets."""
        if type(value) is not dict or value.keys() != {"sessions"}:
            yield 0, self._session("", value, _FORMS)
            return
        members = value["sessions"]
        if type(members) is not dict:
            self._problem("sessions", 'must be an object such as {"1": {"patches": […]}}')
            return
        for key, member in members.items():
            place = f"session {key}"
            if not _FILE_NUMBER.fullmatch(key):
                self._problem(place, "must be the number of a session's file, such as '0' or '1'")
            elif sessions is not None and int(key) >= sessions:
                self._problem(place, f"there is no such file; the last one is {sessions - 1}")
            else:
                form = 'must be a list of entries or {"patches": […]}'
                yield int(key), self._session(f"{place}, ", member, form)

    def _session(self, prefix: str, value: object, form: str) -> SessionOverride:
        if type(value) is list:
            return Replacement(
                [self._entry(f"{prefix}entry {place}", item) for place, item in enumerate(value)]
            )
        if type(value) is not dict or value.keys() != {"patches"}:
            self._problem(prefix.removesuffix(", "), form)
        elif type(value["patches"]) is not list:
            self._problem(f"{prefix}patches", "must be a list")
        else:
            return Patches(self._patches(prefix, value["patches"]))
        return Patches({})

    def _patches(self, prefix: str, patches: list[object]) -> dict[int, ReplayEntry]:
        found: dict[int, ReplayEntry] = {}
        for number, patch in enumerate(patches):
            place = f"{prefix}patch {number}"
            if type(patch) is not dict or patch.keys() != {"at", "entry"}:
                self._problem(place, "must have exactly the keys at and entry")
                continue
            entry, at = self._entry(f"{place}.entry", patch["entry"]), patch["at"]
            if not is_safe_integer(at) or at < 0:
                self._problem(f"{place}.at", "must be an integer from 0 to 2^53-1")
            elif at in found:
                self._problem(f"{place}.at", f"another patch stands at {int(at)} already")
            else:
                found[int(at)] = entry
        return found

    def _entry(self, place: str, value: object) -> ReplayEntry:
        if type(value) is not dict:
            self._problem(place, "must be an object")
            return {}
        kind = value.get("kind")
        if type(kind) is not str or kind not in _KEYS:
            self._problem(f"{place}.kind", f"must be chunks, throw or hang, not {shown(kind)}")
            return {}
        required, optional = _KEYS[kind]
        if not required <= value.keys() <= required | optional:
            also = f", and may have {' and '.join(sorted(optional))}" if optional else ""
            listed = ", ".join(key for key in _ORDER if key in required)
            self._problem(place, f"a {kind} entry must have exactly {listed}{also}")
            return {}
        for key in ("message", "code", "readyFile"):
            if key in value and (type(value[key]) is not str or not value[key]):
                self._problem(f"{place}.{key}", "must be a string that is not empty")
        if "chunks" in value:
            self._chunks(f"{place}.chunks", value["chunks"])
        return {key: value[key] for key in _ORDER if key in value}

    def _chunks(self, place: str, value: object) -> None:
        if type(value) is not list:
            self._problem(place, "must be a list")
            return
        for number, chunk in enumerate(value):
            if type(chunk) is not dict:
                self._problem(f"{place}[{number}]", "must be an object")
            elif chunk.get("type") not in CHUNK_TYPES:
                known = ", ".join(CHUNK_TYPES)
                self._problem(f"{place}[{number}].type", f"must be one of {known}")

    def _problem(self, place: str, what: str) -> None:
        self.problems.append(Problem(place, what))
