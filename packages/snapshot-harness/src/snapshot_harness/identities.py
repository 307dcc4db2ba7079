"""Ids that differ from run to run: finding them, and naming them by first sight. No I/O."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from snapshot_harness.json_value import Json
from snapshot_harness.rules import Identity

ID_TOKEN = re.compile(r"\{\{(session|message|uuid|id):(\d+)\}\}")
UUID = r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f])"
CONTRACT_CALL = re.compile(r"(?:\d+(?:/\d+\.\d+\.\d+(?:\.\d+)?)*:)?\d+\.\d+\.\d+")
"""A tool call's id as the contract spells it: a place, which never moves."""

_SESSION_KEYS = frozenset({"sessionId", "parentSession"})
_OTHER_KEYS = frozenset({"retryId", "terminalId"})
_CALL_KEYS = frozenset({"toolCallId", "parentToolCallId"})
_WORD = re.compile(r"[a-z_-]{1,19}|[A-Z_-]{1,19}|.{1,7}", re.DOTALL)
"""What may be an ordinary word: an id like that is one only where a key says so."""


class Identities:
    """The ids of one run, by kind.

    Told every value that is output; model rows are input, and the ids in them
    are the model's own: they never move.
    """

    def __init__(self, *, identity: Identity, chosen: Iterable[str] = ()) -> None:
        self._merged = identity == "merged"
        self._chosen = frozenset(chosen)
        self._kinds: dict[str, str] = {}
        self._ranks = {"session": 0, "message": 1, "id": 2}

    def add_session(self, value: object) -> None:
        """Take in the id of a session."""
        self._add("session", value)

    def collect(self, value: Json, *, event: str = "") -> None:
        """Take in the ids of a value; `event` is the type of the record it belongs to."""
        if isinstance(value, list):
            for child in value:
                self.collect(child, event=event)
        elif isinstance(value, dict):
            for key, child in value.items():
                if isinstance(child, str):
                    self._collect_text(key, child, value, event=event)
                else:
                    self.collect(child, event=event)

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern that finds an id, or the token of one, inside a text."""
        # The pattern for any UUID finds those that are known, too.
        words = [
            word
            for word in self._kinds
            if not _WORD.fullmatch(word) and not re.fullmatch(UUID, word)
        ]
        words.sort(key=lambda word: (-len(word), word))
        known = [rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])" for word in words]
        return re.compile("|".join([*known, ID_TOKEN.pattern, UUID]))

    def kind(self, value: str) -> str | None:
        """Return the kind of a value that is an id as a whole."""
        return self._kinds.get(value)

    def is_chosen(self, value: str) -> bool:
        """Tell whether the model chose this id."""
        return value in self._chosen

    def _collect_text(self, key: str, text: str, beside: Mapping[str, Json], *, event: str) -> None:
        """Take in a text if its key, and what stands beside it, say that it is an id."""
        if key in _SESSION_KEYS:
            self._add("session", text)
        elif key == "messageId" or (key == "id" and isinstance(beside.get("role"), str)):
            self._add("message", text)
        elif key in _OTHER_KEYS:
            self._add("id", text)
        elif (key == "id" and event.startswith("approval/")) or (
            key in _CALL_KEYS and not self._merged
        ):
            self._add_call(text)

    def _add_call(self, value: str) -> None:
        if CONTRACT_CALL.fullmatch(value) is None:
            self._add("id", value)

    def _add(self, kind: str, value: object) -> None:
        if not isinstance(value, str) or not value or "{{" in value or value in self._chosen:
            return
        known = self._kinds.get(value)
        if known is None or self._ranks[kind] < self._ranks[known]:
            self._kinds[value] = kind


class Names:
    """Names ids in order of first sight: the same id always gets the same token."""

    def __init__(self, identities: Identities, *, identity: Identity) -> None:
        self._identities = identities
        self._pattern = identities.pattern()
        self._merged = identity == "merged"
        self._tokens: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._adopted: frozenset[str] = frozenset()

    def adopt(self) -> None:
        """Take tokens from now on as the names that were given so far.

        Beside literal logs there may be a transcript that was normalized: first
        sight gave these logs' ids the same numbers then as it does now.
        """
        self._adopted = frozenset(self._tokens.values())

    def in_text(self, text: str) -> str:
        """Return `text` with every id in it as its token."""
        return self._pattern.sub(self._match, text)

    def whole(self, key: str, value: str) -> str | None:
        """Return the token of a value that is an id as a whole.

        What may be a word is an id only where the key says so.
        """
        kind = self._identities.kind(value)
        if kind is None:
            return None
        named = key == "parentSession" or key[-2:] in {"id", "Id"}
        return self._name(kind, value) if named or not _WORD.fullmatch(value) else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where ids stand in a text."""
        return [match.span() for match in self._pattern.finditer(text)]

    def _match(self, match: re.Match[str]) -> str:
        found = match[0]
        if match[1] is not None:
            return found if found in self._adopted else self._name(match[1], found)
        if self._identities.is_chosen(found):
            return found
        return self._name(self._identities.kind(found) or "uuid", found)

    def _name(self, kind: str, value: str) -> str:
        if self._merged:
            return "{{sessionId}}"
        if value not in self._tokens:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._tokens[value] = f"{{{{{kind}:{self._counts[kind]}}}}}"
        return self._tokens[value]


def tokens_in(text: str) -> Iterator[str]:
    """Yield the numbered tokens of a text, in order."""
    for match in ID_TOKEN.finditer(text):
        yield match[0]


def without_numbers(text: str) -> str:
    """Return a text with the numbers of its tokens left out."""
    return ID_TOKEN.sub(_kind_alone, text)


_kind_alone: Callable[[re.Match[str]], str] = lambda match: f"{{{{{match[1]}}}}}"  # noqa: E731
