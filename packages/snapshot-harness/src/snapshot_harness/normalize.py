"""Normalization: what moves from run to run becomes a token, on both surfaces. No I/O.

One function serves live runs and fixtures; it is idempotent.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_replay.session_log import SessionLog
from llm_replay.tokens import Roots, tokenize_roots

from snapshot_harness.identities import Identities, Names
from snapshot_harness.model_rows import (
    chosen_ids,
    is_summary,
    model_calls,
    normalize_model_rows,
    normalize_summary,
)
from snapshot_harness.order import Frame, canonical_order
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
    system: Any
    tools: Any


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


def normalize_run(
    logs: Sequence[SessionLog],
    transcript: Sequence[Frame],
    *,
    roots: Roots,
    rules: Rules,
    overridden: Mapping[int, Collection[int]] | None = None,
) -> Normalized:
    """Normalize what a live run left; `logs` stand in order of lineage.

    `overridden` names, by log, the calls that the sidecar serves.
    """
    return _Normalizer(roots, rules).normalize(logs, transcript, overridden or {})


def normalize_fixture(
    logs: Sequence[SessionLog],
    transcript: Sequence[Frame],
    *,
    rules: Rules,
    overridden: Mapping[int, Collection[int]] | None = None,
) -> Normalized:
    """Normalize what the repository holds: a fixture in canonical form stays as it is."""
    return _Normalizer(None, rules).normalize(logs, transcript, overridden or {})


class _Normalizer:
    """Everything that one normalization shares between its values."""

    def __init__(self, roots: Roots | None, rules: Rules) -> None:
        self._roots = roots
        self._rules = rules
        self._merged = rules.identity == "merged"

    def normalize(
        self,
        logs: Sequence[SessionLog],
        transcript: Sequence[Frame],
        overridden: Mapping[int, Collection[int]],
    ) -> Normalized:
        calls = [
            model_calls(log, overridden=overridden.get(place, ())) for place, log in enumerate(logs)
        ]
        rows = [
            normalize_model_rows(log, own, self._roots)
            for log, own in zip(logs, calls, strict=True)
        ]
        chosen = {
            name for log, own in zip(logs, calls, strict=True) for name in chosen_ids(log, own)
        }
        frames = canonical_order(transcript)
        self._names = self._find_names(logs, rows, frames, chosen)
        headers: list[tuple[int, dict[str, Any]]] = []
        normalized = [self._log(place, log, rows[place], headers) for place, log in enumerate(logs)]
        frames = [self._record(frame) for frame in frames]
        frames = number_rpc_ids(frames, merged=self._merged)
        if self._rules.coalesce_chunks:
            frames = coalesce(frames)
        pairs = [self._pair(place, header) for place, header in headers]
        return Normalized(logs=normalized, transcript=frames, headers=pairs)

    def _find_names(
        self,
        logs: Sequence[SessionLog],
        rows: Sequence[Mapping[int, object]],
        frames: Sequence[Frame],
        chosen: Collection[str],
    ) -> Names:
        identity = self._rules.identity
        found = Identities(identity=identity, chosen=chosen)
        for log, own in zip(logs, rows, strict=True):
            found.add_session(log.header.raw.get("id"))
            found.add_session(log.header.raw.get("parentSession"))
            for place, event in enumerate(log.events):
                if place not in own:
                    found.collect(event, event=str(event.get("type")))
        for frame in frames:
            found.collect(frame)
        return Names(found, identity=identity)

    def _log(
        self,
        place: int,
        log: SessionLog,
        rows: Mapping[int, dict[str, Any]],
        headers: list[tuple[int, dict[str, Any]]],
    ) -> NormalizedLog:
        raw = {**log.header.raw, "createdAt": place, "tokens": 1}
        header = self._value(raw, key="", times=False)
        events: list[dict[str, Any]] = []
        for index, event in enumerate(log.events):
            if index in rows:
                event = rows[index]
                events.append(_project(event))
                continue
            told = _header_of(event)
            if told is not None:
                headers.append((place, told))
                event = _with_header_tokens(event, told)
            summary = is_summary(event)
            done = self._record(_project(_with_raw_output(event, None) if summary else event))
            if summary:
                raw = normalize_summary(event, tokens=log.header.tokens, roots=self._roots)
                done = _with_raw_output(done, raw)
            events.append(done)
        return NormalizedLog(
            name=log.name, header=header, events=events, lines=log.lines, model=frozenset(rows)
        )

    def _pair(self, place: int, header: dict[str, Any]) -> HeaderPair:
        told = {key: header[key] for key in ("system", "tools") if key in header}
        told = self._value(told, key="", times=False)
        return HeaderPair(session=place, system=told.get("system"), tools=told.get("tools"))

    def _record(self, record: dict[str, Any]) -> dict[str, Any]:
        done: dict[str, Any] = self._value(record, key="", times=True)
        for rule in self._rules.rules:
            done = rule.in_value(done)
        return done

    def _value(self, value: Any, *, key: str, times: bool) -> Any:
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
        whole = self._names.whole(text)
        if whole is not None:
            return whole
        if self._roots is not None:
            text = tokenize_roots(text, self._roots)
        text = self._names.in_text(text)
        for rule in self._rules.rules:
            text = rule.in_text(text)
        return text


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


def _with_raw_output(event: dict[str, Any], raw: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    return {**event, "data": {**event["data"], "rawOutput": raw}}


def _with_header_tokens(event: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    tokens = {"system": SYSTEM_TOKEN, "tools": TOOLS_TOKEN}
    header = {key: tokens.get(key, value) for key, value in told.items()}
    return {**event, "data": {**event["data"], "header": header}}
