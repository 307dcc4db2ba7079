"""Comparison of two surfaces: the first cause first, later effects folded. No I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from snapshot_harness.align import Pair, align
from snapshot_harness.identities import tokens_in, without_numbers
from snapshot_harness.json_value import Json
from snapshot_harness.normalize import Normalized, NormalizedLog
from snapshot_harness.places import Place, frame_kind, frame_places, log_kind, log_places
from snapshot_harness.references import mapped, references, without_references
from snapshot_harness.values import differences, fingerprint, shown

TRANSCRIPT = "stdout.expected.jsonl"
MAX_CAUSES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One difference: where it is, what was expected, what came.

    `line` counts in the fixture's file. `folded` counts later differences that
    say the same.
    """

    surface: Literal["log", "transcript"]
    file: str
    session: str | None
    turn: int | None
    step: int | None
    line: int | None
    path: str
    expected: str
    actual: str
    message: str
    folded: int = 0


def compare(expected: Normalized, actual: Normalized) -> list[Cause]:
    """Return every difference, the earliest first; none if both are equal.

    Equal means: by value with strict types, up to a bijection of numbered
    tokens, of JSON-RPC ids and of references between events.
    """
    names = _Bijection()
    found: list[tuple[tuple[int, int, int, int], Cause]] = []
    for number, (left, right) in enumerate(_paired(expected.logs, actual.logs)):
        causes = _compare_logs(left, right, names, number)
        found += [((c.turn or 0, 0, number, k), c) for k, c in enumerate(causes)]
    causes = _Records.of_frames(expected.transcript, actual.transcript, names).causes()
    found += [((c.turn or 0, 1, 0, k), c) for k, c in enumerate(causes)]
    return _fold([cause for _, cause in sorted(found, key=lambda item: item[0])])


def render(causes: Sequence[Cause], *, directory: str = "", limit: int = 5) -> str:
    """Return the causes as text: the first `limit` of them, and how many more there are."""
    parts = [_text(cause, directory) for cause in causes[:limit]]
    left = sum(1 + cause.folded for cause in causes[limit:])
    if left > 0:
        parts.append(f"and {left} more {'difference' if left == 1 else 'differences'}")
    return "\n".join(parts)


def _text(cause: Cause, directory: str) -> str:
    where = f"{directory}/{cause.file}" if directory else cause.file
    if cause.line is not None:
        where += f":{cause.line}"
    place = [
        f"{word} {value}"
        for word, value in (
            ("session", cause.session),
            ("turn", cause.turn),
            ("step", cause.step),
        )
        if value is not None
    ]
    lines = [f"{where}: {', '.join(place)}{': ' if place else ''}{cause.message}"]
    if cause.path:
        lines.append(f"  at:       {cause.path}")
    lines += [f"  expected: {cause.expected}", f"  actual:   {cause.actual}"]
    if cause.folded == 1:
        lines.append("  1 later difference follows from it or says the same")
    elif cause.folded:
        lines.append(f"  {cause.folded} later differences follow from it or say the same")
    return "\n".join(lines)


class _Bijection:
    """Which name of one side is which of the other."""

    def __init__(self) -> None:
        self._there: dict[object, object] = {}
        self._back: dict[object, object] = {}

    def clash(self, left: object, right: object) -> bool:
        """Take two names as the same; tell whether one of them is another's already."""
        clash = self._there.get(left, right) != right or self._back.get(right, left) != left
        if not clash:
            self._there[left], self._back[right] = right, left
        return clash


def _paired(
    expected: Sequence[NormalizedLog], actual: Sequence[NormalizedLog]
) -> list[tuple[NormalizedLog | None, NormalizedLog | None]]:
    """Pair logs by lineage where both sides have it, else by their order."""
    keys_l = [log.header.get("lineage") for log in expected]
    keys_r = [log.header.get("lineage") for log in actual]
    whole = all(isinstance(key, str) for key in [*keys_l, *keys_r])
    if not whole or len(set(keys_l)) < len(keys_l) or len(set(keys_r)) < len(keys_r):
        count = max(len(expected), len(actual))
        left: list[NormalizedLog | None] = [*expected, *[None] * (count - len(expected))]
        right: list[NormalizedLog | None] = [*actual, *[None] * (count - len(actual))]
        return list(zip(left, right, strict=True))
    by_key = dict(zip(keys_r, actual, strict=True))
    pairs = [(log, by_key.pop(key, None)) for log, key in zip(expected, keys_l, strict=True)]
    return [*pairs, *((None, log) for log in by_key.values())]


def _compare_logs(
    left: NormalizedLog | None, right: NormalizedLog | None, names: _Bijection, number: int
) -> list[Cause]:
    if left is not None and right is not None:
        return _Records.of_logs(left, right, names, number).causes()
    log = left or right
    assert log is not None  # noqa: S101  one of the two is there
    session = _session(log, number)
    present = f"a session with {len(log.events)} events"
    return [
        Cause(
            surface="log",
            file=log.name if left is not None else _file_name(number),
            session=session,
            turn=None,
            step=None,
            line=1 if left is not None else None,
            path="",
            expected=present if left is not None else "nothing",
            actual="nothing" if left is not None else present,
            message="this session is missing" if left is not None else "an unexpected session",
            folded=len(log.events),
        )
    ]


def _file_name(number: int) -> str:
    return "session.jsonl" if number == 0 else f"session.{number}.jsonl"


def _session(log: NormalizedLog, number: int) -> str:
    lineage = log.header.get("lineage")
    return lineage if isinstance(lineage, str) else str(number + 1)


class _Records:
    """Two lists of records of one surface, and how to tell what moved in them."""

    def __init__(  # noqa: PLR0913  facts, all by keyword
        self,
        *,
        expected: Sequence[dict[str, Any]],
        actual: Sequence[dict[str, Any]],
        lines: Sequence[int],
        places: tuple[list[Place], list[Place]],
        kind: Callable[[dict[str, Any], Place], object],
        names: _Bijection,
        make: Callable[..., Cause],
        log: bool,
    ) -> None:
        self._expected, self._actual = expected, actual
        self._lines, self._kind, self._names = lines, kind, names
        self._places_l, self._places_r = places
        self._make, self._log = make, log
        self._left = [self._skeleton(record) for record in expected]
        self._right = [self._skeleton(record) for record in actual]

    @classmethod
    def of_logs(
        cls, left: NormalizedLog, right: NormalizedLog, names: _Bijection, number: int
    ) -> "_Records":
        """Compare two logs, their headers as records of their own."""
        session = _session(left, number)
        return cls(
            expected=[_without_place(left.header), *left.events],
            actual=[_without_place(right.header), *right.events],
            lines=[1, *left.lines],
            places=(log_places(left.events), log_places(right.events)),
            kind=log_kind,
            names=names,
            make=lambda **facts: Cause(
                surface="log", file=left.name, **{**facts, "session": session}
            ),
            log=True,
        )

    @classmethod
    def of_frames(
        cls, left: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]], names: _Bijection
    ) -> "_Records":
        """Compare two transcripts."""
        return cls(
            expected=left,
            actual=right,
            lines=range(1, len(left) + 1),
            places=(frame_places(left), frame_places(right)),
            kind=frame_kind,
            names=names,
            make=lambda **facts: Cause(surface="transcript", file=TRANSCRIPT, **facts),
            log=False,
        )

    def causes(self) -> list[Cause]:
        """Return the differences in order of place."""
        equal = align(self._left, self._right)
        ends = (len(self._left), len(self._right))
        changed = [
            pair
            for (a, b), (c, d) in pairwise([(-1, -1), *equal, ends])
            for pair in self._alike((a + 1, c), (b + 1, d))
        ]
        pairs = sorted([*equal, *changed])
        self._there = dict(pairs)
        self._back = {right: left for left, right in pairs}
        # Records count from the header on; references count events.
        self._events_there = {left - 1: right - 1 for left, right in pairs}
        self._events_back = {right - 1: left - 1 for left, right in pairs}
        found = [*self._lone(), *self._paired(pairs)]
        return [cause for _, cause in sorted(found, key=lambda item: item[0])]

    def _alike(self, span_l: Pair, span_r: Pair) -> list[Pair]:
        """Pair the records of a gap that are of one kind, and so the same one, changed."""
        (low_l, high_l), (low_r, high_r) = span_l, span_r
        if low_l == high_l or low_r == high_r:
            return []
        kinds_l = [self._kind(self._expected[k], self._places_l[k]) for k in range(low_l, high_l)]
        kinds_r = [self._kind(self._actual[k], self._places_r[k]) for k in range(low_r, high_r)]
        return [(low_l + a, low_r + b) for a, b in align(kinds_l, kinds_r)]

    def _lone(self) -> list[tuple[tuple[int, int], Cause]]:
        """Return what stands on one side only: missing, unexpected or moved."""
        missing = [k for k in range(len(self._left)) if k not in self._there]
        extra = [k for k in range(len(self._right)) if k not in self._back]
        twins: dict[str, list[int]] = {}
        for place in extra:
            twins.setdefault(self._right[place], []).append(place)
        found = []
        moved: set[int] = set()
        for place in missing:
            others = twins.get(self._left[place])
            other = others.pop(0) if others else None
            if other is not None:
                moved.add(other)
            found.append(((place, 0), self._missing(place, other)))
        lone = [place for place in extra if place not in moved]
        return [*found, *(((self._behind(place), -1), self._unexpected(place)) for place in lone)]

    def _before(self, place: int) -> int:
        """Return the record of the fixture that an unexpected one came after."""
        while place > 0 and place not in self._back:
            place -= 1
        return self._back.get(place, -1)

    def _behind(self, place: int) -> int:
        """Return the record of the fixture that an unexpected one came before."""
        while place < len(self._right) and place not in self._back:
            place += 1
        return self._back.get(place, len(self._left))

    def _missing(self, place: int, moved_to: int | None) -> Cause:
        record = self._expected[place]
        what = _name(record)
        if moved_to is None:
            message, actual = f"{what} is missing", "nothing"
        else:
            after = self._actual[moved_to - 1] if moved_to else None
            message = f"{what} came in another place"
            actual = f"it came after {_name(after)}" if after is not None else "it came first"
        at = self._places_l[place]
        return self._make(
            session=at.session,
            turn=at.turn,
            step=at.step,
            line=self._lines[place],
            path="",
            expected=shown(record),
            actual=actual,
            message=message,
        )

    def _unexpected(self, place: int) -> Cause:
        at = self._places_r[place]
        before = self._before(place)
        return self._make(
            session=at.session,
            turn=at.turn,
            step=at.step,
            line=self._lines[before] if before >= 0 else None,
            path="",
            expected="nothing",
            actual=shown(self._actual[place]),
            message=f"unexpected {_name(self._actual[place])} after this line",
        )

    def _paired(self, pairs: Sequence[Pair]) -> list[tuple[tuple[int, int], Cause]]:
        found = []
        for left, right in pairs:
            difference = self._difference(left, right)
            if difference is not None:
                path, expected, actual, message = difference
                at = self._places_l[left]
                cause = self._make(
                    session=at.session,
                    turn=at.turn,
                    step=at.step,
                    line=self._lines[left],
                    path=path,
                    expected=shown(expected, actual),
                    actual=shown(actual, expected),
                    message=message,
                )
                found.append(((left, 0), cause))
        return found

    def _difference(self, left: int, right: int) -> tuple[str, Any, Any, str] | None:
        expected, actual = self._expected[left], self._actual[right]
        if self._left[left] != self._right[right]:
            bare = (self._bare(expected), self._bare(actual))
            first = next(differences(*bare), None)
            return None if first is None else (*first, f"{_name(expected)} differs")
        return (
            self._swapped(expected, actual)
            or self._wrong_id(expected, actual)
            or self._wrong_reference(expected, actual)
        )

    def _swapped(
        self, expected: dict[str, Any], actual: dict[str, Any]
    ) -> tuple[str, Any, Any, str] | None:
        text_l, text_r = fingerprint(expected), fingerprint(actual)
        if "{{" not in text_l:
            return None
        for left, right in zip(tokens_in(text_l), tokens_in(text_r), strict=True):
            if self._names.clash(left, right):
                path = next(_paths_of(expected, left), "")
                return path, left, right, f"swapped id in {_name(expected)}"
        return None

    def _wrong_id(
        self, expected: dict[str, Any], actual: dict[str, Any]
    ) -> tuple[str, Any, Any, str] | None:
        left, right = expected.get("id"), actual.get("id")
        if self._log or left is None or right is None:
            return None
        side = "agent" if "method" in expected else "client"
        if not self._names.clash((side, left), (side, right)):
            return None
        return "id", left, right, f"swapped id in {_name(expected)}"

    def _wrong_reference(
        self, expected: dict[str, Any], actual: dict[str, Any]
    ) -> tuple[str, Any, Any, str] | None:
        if not self._log:
            return None
        there, back = self._events_there, self._events_back
        for (path, left), (_, right) in zip(references(expected), references(actual), strict=True):
            if mapped(left, there) != [k for k in right if k in back]:
                return path, left, right, f"{_name(expected)} refers to other events"
        return None

    def _skeleton(self, record: dict[str, Any]) -> str:
        return without_numbers(fingerprint(self._bare(record)))

    def _bare(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record without what is compared by bijection."""
        if self._log:
            bare: dict[str, Any] = without_references(record)
            return bare
        return {**record, "id": "id"} if record.get("id") is not None else record


def _without_place(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header without its session's place: logs are paired before they are compared."""
    return {key: value for key, value in header.items() if key != "createdAt"}


def _paths_of(value: Json, token: str, path: str = "") -> Json:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _paths_of(child, token, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _paths_of(child, token, f"{path}[{index}]")
    elif isinstance(value, str) and token in value:
        yield path


def _name(record: dict[str, Any]) -> str:
    """Return what a record is, in a word or two."""
    kind = record.get("type")
    if isinstance(kind, str):
        return kind
    params = record.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    if isinstance(update, dict) and isinstance(update.get("sessionUpdate"), str):
        return f"update {update['sessionUpdate']}"
    if isinstance(record.get("method"), str):
        return str(record["method"])
    return "answer" if "result" in record or "error" in record else "frame"


def _fold(causes: Sequence[Cause]) -> list[Cause]:
    """Fold a difference into an earlier one that says the same, and a run of lone records."""
    kept: list[Cause] = []
    seen: dict[object, int] = {}
    for cause in causes:
        key: object = (cause.expected, cause.actual)
        if cause.expected == "nothing" or cause.actual == "nothing":
            key = (cause.surface, cause.file, cause.turn, cause.step, cause.expected == "nothing")
        place = seen.get(key)
        if place is None and len(kept) >= MAX_CAUSES:
            place = len(kept) - 1
        if place is None:
            seen[key] = len(kept)
            kept.append(cause)
        else:
            kept[place] = replace(kept[place], folded=kept[place].folded + 1 + cause.folded)
    return kept
