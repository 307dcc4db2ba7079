"""Normalization: what moves from run to run becomes a token, on both surfaces. No I/O.

One function serves live runs and fixtures; it is idempotent.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots
from snapshot_harness.identities import Identities, Names
from snapshot_harness.json_value import Json
from snapshot_harness.model_rows import (
    ModelRows,
    model_rows,
    seed_length,
    served_by_override,
)
from snapshot_harness.order import Frame, canonical_order
from snapshot_harness.paths import RootNames, is_absolute
from snapshot_harness.rules import Rule, Rules
from snapshot_harness.wire import coalesce, number_rpc_ids

__all__ = ["HeaderPair", "Normalized", "NormalizedLog", "Rule", "Rules"]

SYSTEM_TOKEN = "{{system}}"  # noqa: S105  a placeholder
TOOLS_TOKEN = "{{tools}}"  # noqa: S105  a placeholder

_TIMES = frozenset(
    {"createdAt", "endedAt", "startedAt", "time", "timestamp", "updatedAt", "durationMs"}
)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_PAYLOADS = frozenset({"rawInput", "arguments", "inputSchema", "schema"})
"""What a model or a tool's author wrote: a `time` in there is theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderPair:
    """What a session was told: its prompt and its tools, as in one `request/header`."""

    session: int
    system: Json
    tools: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizedLog:
    """One log as it is compared and written: projected, with tokens.

    `model` holds the indexes of the events that are model rows.
    """

    name: str
    header: dict[str, Any]
    events: list[dict[str, Any]]
    lines: list[int]
    model: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """Both surfaces of one run, and the headers that its sessions were told."""

    logs: list[NormalizedLog]
    transcript: list[Frame]
    headers: list[HeaderPair] = field(default_factory=list)


def normalize_run(  # noqa: PLR0913  facts, all by keyword
    logs: Sequence[SessionLog],
    transcript: Sequence[Frame],
    *,
    roots: Roots,
    rules: Rules,
    overridden: Mapping[int, Collection[int]] | None = None,
    foreign: Sequence[str] = (),
) -> Normalized:
    """Normalize what a live run left; `logs` stand in order of lineage.

    `overridden` names, by log, the calls that the sidecar serves; `foreign` the
    directories of the literal logs that the run is compared with.
    """
    return _Normalizer(roots, rules, foreign).normalize(logs, transcript, overridden or {})


def normalize_fixture(
    logs: Sequence[SessionLog],
    transcript: Sequence[Frame],
    *,
    rules: Rules,
    overridden: Mapping[int, Collection[int]] | None = None,
) -> Normalized:
    """Normalize what the repository holds: a fixture in canonical form stays as it is."""
    return _Normalizer(None, rules, foreign_roots(logs)).normalize(
        logs, transcript, overridden or {}
    )


def foreign_roots(logs: Sequence[SessionLog]) -> list[str]:
    """Return the working directories of literal logs, which were recorded elsewhere."""
    return [
        log.header.cwd
        for log in logs
        if not log.header.tokens and log.header.cwd is not None and is_absolute(log.header.cwd)
    ]


class _Normalizer:
    """Everything that one normalization shares between its values."""

    def __init__(self, roots: Roots | None, rules: Rules, foreign: Sequence[str]) -> None:
        self._roots = roots
        self._root_names = RootNames(roots, foreign=foreign)
        self._rules = rules
        self._merged = rules.identity == "merged"

    def normalize(
        self,
        logs: Sequence[SessionLog],
        transcript: Sequence[Frame],
        overridden: Mapping[int, Collection[int]],
    ) -> Normalized:
        rows = list(self._rows(logs, overridden))
        frames = canonical_order(transcript)
        self._names = self._find_names(logs, rows, frames)
        headers: list[tuple[int, dict[str, Any]]] = []
        normalized = [self._log(place, log, rows[place], headers) for place, log in enumerate(logs)]
        frames = [self._record(frame) for frame in number_rpc_ids(frames, merged=self._merged)]
        if self._rules.coalesce_chunks:
            frames = coalesce(frames)
        pairs = [self._pair(place, header) for place, header in headers]
        return Normalized(logs=normalized, transcript=frames, headers=pairs)

    def _rows(
        self, logs: Sequence[SessionLog], overridden: Mapping[int, Collection[int]]
    ) -> Iterator[ModelRows]:
        """Yield each log's model rows; what a child inherited is what it was in the parent."""
        output: dict[object, set[int]] = {}
        for place, log in enumerate(logs):
            raw = log.header.raw
            parents = output.get(raw.get("parentSession"), set())
            inherited = {index for index in parents if index < seed_length(log)}
            calls = overridden.get(place, ())
            served = inherited | served_by_override(log, calls, primary=not place)
            output[raw.get("id")] = served
            yield model_rows(log, roots=self._roots, output=served)

    def _find_names(
        self,
        logs: Sequence[SessionLog],
        rows: Sequence[ModelRows],
        frames: Sequence[Frame],
    ) -> Names:
        identity = self._rules.identity
        chosen = {name for own in rows for name in own.chosen}
        found = Identities(identity=identity, chosen=chosen)
        for log, own in zip(logs, rows, strict=True):
            found.add_session(log.header.raw.get("id"))
            found.add_session(log.header.raw.get("parentSession"))
            for place, event in enumerate(log.events):
                if place in own.summaries:
                    event = _with_raw_output(event, None)  # noqa: PLW2901  a copy
                if place not in own.chunks:
                    found.collect(event, event=str(event.get("type")))
        for frame in frames:
            found.collect(frame)
        return Names(found, identity=identity)

    def _log(
        self,
        place: int,
        log: SessionLog,
        rows: ModelRows,
        headers: list[tuple[int, dict[str, Any]]],
    ) -> NormalizedLog:
        raw = {**log.header.raw, "createdAt": place, "tokens": 1}
        header = self._value(raw, key="", times=False)
        events: list[dict[str, Any]] = []
        for index, event in enumerate(log.events):
            told = _header_of(event)
            if told is not None:
                headers.append((place, told))
            events.append(self._event(event, index, rows, told))
        return NormalizedLog(
            name=log.name,
            header=header,
            events=events,
            lines=log.lines,
            model=frozenset(rows.chunks),
        )

    def _event(
        self, event: dict[str, Any], index: int, rows: ModelRows, told: dict[str, Any] | None
    ) -> dict[str, Any]:
        if index in rows.chunks:
            return _project(rows.chunks[index])
        if told is not None:
            event = _with_header_tokens(event, told)
        if index not in rows.summaries:
            return self._record(_project(event))
        done = self._record(_project(_with_raw_output(event, None)))
        return _with_raw_output(done, rows.summaries[index])

    def _pair(self, place: int, header: dict[str, Any]) -> HeaderPair:
        told = {key: header[key] for key in ("system", "tools") if key in header}
        told = self._value(told, key="", times=False)
        return HeaderPair(session=place, system=told.get("system"), tools=told.get("tools"))

    def _record(self, record: dict[str, Any]) -> dict[str, Any]:
        # Rules first: an id that one of them takes away must not be counted.
        for rule in self._rules.rules:
            record = rule.in_value(record)
        done: dict[str, Any] = self._value(record, key="", times=True)
        return done

    def _value(self, value: Json, *, key: str, times: bool) -> Json:
        if isinstance(value, str):
            return self._text(value, key=key, times=times)
        if isinstance(value, dict):
            # Sorted: which id is seen first must not hang on the order of keys.
            done = {
                k: self._value(value[k], key=k, times=times and k not in _PAYLOADS)
                for k in sorted(value)
            }
            return {k: done[k] for k in value}
        if isinstance(value, list):
            return [self._value(child, key="", times=times) for child in value]
        if times and key in _TIMES and type(value) in (int, float):
            return 0
        return value

    def _text(self, text: str, *, key: str, times: bool) -> str:
        if times and key in _TIMES and _ISO_TIME.fullmatch(text):
            return "0"
        whole = self._names.whole(key, text)
        if whole is not None:
            return whole
        text = self._root_names.in_text(text)
        for rule in self._rules.rules:
            text = rule.in_text(text, keep=self._names.spans(text))
        return self._names.in_text(text)


def _project(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in ("seq", "time")}


def _header_of(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a `request/header` told the session, unless it is in the sidecars already."""
    data = event.get("data")
    header = data.get("header") if isinstance(data, dict) else None
    if event.get("type") != "request/header" or not isinstance(header, dict):
        return None
    live = header.get("system", SYSTEM_TOKEN) != SYSTEM_TOKEN
    return header if live or header.get("tools", TOOLS_TOKEN) != TOOLS_TOKEN else None


def _with_raw_output(event: dict[str, Any], raw: Json) -> dict[str, Any]:
    return {**event, "data": {**event["data"], "rawOutput": raw}}


def _with_header_tokens(event: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    tokens = {"system": SYSTEM_TOKEN, "tools": TOOLS_TOKEN}
    header = {key: tokens.get(key, value) for key, value in told.items()}
    return {**event, "data": {**event["data"], "header": header}}
