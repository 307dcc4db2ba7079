"""Normalization: what moves from run to run becomes a token, on both surfaces. No I/O.

One function serves live runs and fixtures; it is idempotent.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots
from snapshot_harness.exceptions import NestingError
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
from snapshot_harness.rules import Rules
from snapshot_harness.wire import coalesce, number_rpc_ids

SYSTEM_TOKEN = "{{system}}"  # noqa: S105  a placeholder
TOOLS_TOKEN = "{{tools}}"  # noqa: S105  a placeholder

_TIMES = frozenset(
    {"createdAt", "endedAt", "startedAt", "time", "timestamp", "updatedAt", "durationMs"}
)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_NAMES = frozenset({"jsonrpc", "method", "role", "sessionUpdate", "type"})
"""What the formats themselves say: never an id or a time."""
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

    Raises:
        NestingError: A record is nested too deeply.
    """
    try:
        return _Normalizer(roots, rules, foreign).normalize(logs, transcript, overridden or {})
    except RecursionError:
        raise NestingError from None


def normalize_fixture(
    logs: Sequence[SessionLog],
    transcript: Sequence[Frame],
    *,
    rules: Rules,
    overridden: Mapping[int, Collection[int]] | None = None,
) -> Normalized:
    """Normalize what the repository holds: a fixture in canonical form stays as it is.

    Raises:
        NestingError: A record is nested too deeply.
    """
    try:
        return _Normalizer(None, rules, foreign_roots(logs)).normalize(
            logs, transcript, overridden or {}
        )
    except RecursionError:
        raise NestingError from None


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
        outputs = [list(self._outputs(log, own)) for log, own in zip(logs, rows, strict=True)]
        frames = number_rpc_ids(canonical_order(transcript), merged=self._merged)
        frames = [self._ruled(frame) for frame in frames]
        self._names = self._find_names(logs, rows, [*chain(*outputs), *frames])
        normalized = [
            self._log(place, log, rows[place], outputs[place]) for place, log in enumerate(logs)
        ]
        if self._roots is None and not all(log.header.tokens for log in logs):
            self._names.adopt()
        frames = [self._value(frame, key="", times=True) for frame in frames]
        if self._rules.coalesce_chunks:
            frames = coalesce(frames)
        # Last: an id in a prompt must not move the numbers of the fixture, which has no prompt.
        pairs = [
            self._pair(place, told)
            for place, log in enumerate(logs)
            for told in map(_header_of, log.events)
            if told is not None
        ]
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

    def _outputs(self, log: SessionLog, rows: ModelRows) -> Iterator[dict[str, Any]]:
        """Yield the output of a log, projected, without what is input or kept in sidecars."""
        for index, event in enumerate(log.events):
            if index in rows.chunks:
                continue
            told = _header_of(event)
            if told is not None:
                event = _with_header_tokens(event, told)  # noqa: PLW2901  a copy
            if index in rows.summaries:
                event = _with_raw_output(event, None)  # noqa: PLW2901  a copy
            yield self._ruled(_project(event))

    def _find_names(
        self,
        logs: Sequence[SessionLog],
        rows: Sequence[ModelRows],
        records: Sequence[dict[str, Any]],
    ) -> Names:
        identity = self._rules.identity
        chosen = {name for own in rows for name in own.chosen}
        found = Identities(identity=identity, chosen=chosen)
        for log in logs:
            found.add_session(log.header.raw.get("id"))
            found.add_session(log.header.raw.get("parentSession"))
        for record in records:
            found.collect(record, event=str(record.get("type")))
        return Names(found, identity=identity)

    def _log(
        self, place: int, log: SessionLog, rows: ModelRows, outputs: Sequence[dict[str, Any]]
    ) -> NormalizedLog:
        raw = {**log.header.raw, "createdAt": place, "tokens": 1}
        header = self._value(raw, key="", times=False)
        events: list[dict[str, Any]] = []
        rest = iter(outputs)
        for index in range(len(log.events)):
            if index in rows.chunks:
                events.append(_project(rows.chunks[index]))
                continue
            done = self._value(next(rest), key="", times=True)
            if index in rows.summaries:
                done = _with_raw_output(done, rows.summaries[index])
            events.append(done)
        return NormalizedLog(
            name=log.name,
            header=header,
            events=events,
            lines=log.lines,
            model=frozenset(rows.chunks),
        )

    def _pair(self, place: int, header: dict[str, Any]) -> HeaderPair:
        told = {key: header[key] for key in ("system", "tools") if key in header}
        told = self._value(told, key="", times=False)
        return HeaderPair(session=place, system=told.get("system"), tools=told.get("tools"))

    def _ruled(self, record: dict[str, Any]) -> dict[str, Any]:
        """Apply the suite's paths first: an id that one takes away must not be counted."""
        for rule in self._rules.rules:
            record = rule.in_value(record)
        return record

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
        if key in _NAMES:
            # A run's own directories are tokens everywhere; most names have one slash at most.
            return self._root_names.in_text(text) if text.count("/") > 1 else text
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
