"""Two lists of records of one surface, and what differs between them. No I/O."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from snapshot_harness.align import Pair
from snapshot_harness.causes import Cause
from snapshot_harness.identities import tokens_in, without_numbers
from snapshot_harness.json_value import Json
from snapshot_harness.normalize import NormalizedLog
from snapshot_harness.pairing import pair_records
from snapshot_harness.places import FRAME_KINDS, LOG_KINDS, Kind, Place, frame_places, log_places
from snapshot_harness.references import mapped, references, without_references
from snapshot_harness.values import differences, fingerprint, shown

TRANSCRIPT = "stdout.expected.jsonl"

Difference = tuple[str, Json, Json, str]
"""Path, both values, and what to say."""


class Bijection:
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


class Records:
    """Two lists of records of one surface, and how to tell what moved in them."""

    def __init__(  # noqa: PLR0913  facts, all by keyword
        self,
        *,
        expected: Sequence[dict[str, Any]],
        actual: Sequence[dict[str, Any]],
        lines: Sequence[int],
        places: tuple[list[Place], list[Place]],
        kinds: Sequence[Kind],
        names: Bijection,
        make: Callable[..., Cause],
        log: bool,
    ) -> None:
        self._expected, self._actual = expected, actual
        self._lines, self._kinds, self._names = lines, kinds, names
        self._places_l, self._places_r = places
        self._make, self._log = make, log
        self._left = [self._skeleton(record) for record in expected]
        self._right = [self._skeleton(record) for record in actual]

    @classmethod
    def of_logs(
        cls, left: NormalizedLog, right: NormalizedLog, names: Bijection, number: int
    ) -> "Records":
        """Compare two logs, their headers as records of their own."""
        session = session_name(left.header, number)
        return cls(
            expected=[_without_place(left.header), *left.events],
            actual=[_without_place(right.header), *right.events],
            lines=[1, *left.lines],
            places=(log_places(left.events), log_places(right.events)),
            kinds=LOG_KINDS,
            names=names,
            make=lambda **facts: Cause(
                surface="log", file=left.name, **{**facts, "session": session}
            ),
            log=True,
        )

    @classmethod
    def of_frames(
        cls, left: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]], names: Bijection
    ) -> "Records":
        """Compare two transcripts."""
        return cls(
            expected=left,
            actual=right,
            lines=range(1, len(left) + 1),
            places=(frame_places(left), frame_places(right)),
            kinds=FRAME_KINDS,
            names=names,
            make=lambda **facts: Cause(surface="transcript", file=TRANSCRIPT, **facts),
            log=False,
        )

    def causes(self) -> list[Cause]:
        """Return the differences in order of place."""
        kinds = [(partial(self._kind_l, kind), partial(self._kind_r, kind)) for kind in self._kinds]
        pairing = pair_records(self._left, self._right, kinds)
        self._back = {right: left for left, right in pairing.pairs}
        # Records count from the header on; references count events.
        self._events_there = {left - 1: right - 1 for left, right in pairing.pairs}
        self._events_back = {right - 1: left - 1 for left, right in pairing.pairs}
        found = [((k, 0), self._missing(k, pairing.moved.get(k))) for k in pairing.missing]
        beside = self._neighbours() if pairing.extra else []
        for k in pairing.extra:
            after, before = beside[k]
            found.append(((before, -1), self._unexpected(k, after=after)))
        found += self._paired(pairing.pairs)
        return [cause for _, cause in sorted(found, key=lambda item: item[0])]

    def _kind_l(self, kind: Kind, place: int) -> Hashable:
        return kind(self._expected[place], self._places_l[place])

    def _kind_r(self, kind: Kind, place: int) -> Hashable:
        return kind(self._actual[place], self._places_r[place])

    def _neighbours(self) -> list[Pair]:
        """Return, for each actual record, the committed ones that it came after and before."""
        after: list[int] = []
        last = -1
        for place in range(len(self._right)):
            last = self._back.get(place, last)
            after.append(last)
        before: list[int] = []
        following = len(self._left)
        for place in reversed(range(len(self._right))):
            following = self._back.get(place, following)
            before.append(following)
        return list(zip(after, reversed(before), strict=True))

    def _missing(self, place: int, moved_to: int | None) -> Cause:
        record = self._expected[place]
        what = name_of(record)
        if moved_to is None:
            message, actual = f"{what} is missing", "nothing"
        else:
            after = self._actual[moved_to - 1] if moved_to else None
            message = f"{what} came in another place"
            actual = f"it came after {name_of(after)}" if after is not None else "it came first"
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
            records=(shown(record), ""),
        )

    def _unexpected(self, place: int, *, after: int) -> Cause:
        at = self._places_r[place]
        where = "after this line" if after >= 0 else "at the beginning"
        return self._make(
            session=at.session,
            turn=at.turn,
            step=at.step,
            line=self._lines[after] if after >= 0 else None,
            path="",
            expected="nothing",
            actual=shown(self._actual[place]),
            message=f"unexpected {name_of(self._actual[place])} {where}",
            records=("", shown(self._actual[place])),
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
                    records=self._shown(left, right),
                )
                found.append(((left, 0), cause))
        return found

    def _shown(self, left: int, right: int) -> tuple[str, str]:
        expected, actual = self._expected[left], self._actual[right]
        return shown(expected, actual), shown(actual, expected)

    def _difference(self, left: int, right: int) -> Difference | None:
        expected, actual = self._expected[left], self._actual[right]
        if self._left[left] != self._right[right]:
            bare = (self._bare(expected), self._bare(actual))
            for path, left_value, right_value in differences(*bare):
                before = dict(references(expected)).get(path, left_value)
                after = dict(references(actual)).get(path, right_value)
                return path, before, after, f"{name_of(expected)} differs"
            return None
        wrong = self._wrong_reference if self._log else self._wrong_id
        return self._swapped(expected, actual) or wrong(expected, actual)

    def _swapped(self, expected: dict[str, Any], actual: dict[str, Any]) -> Difference | None:
        text_l, text_r = fingerprint(expected), fingerprint(actual)
        for left, right in zip(tokens_in(text_l), tokens_in(text_r), strict=True):
            if self._names.clash(left, right):
                path = next(_paths_of(expected, left), "")
                return path, left, right, f"swapped id in {name_of(expected)}"
        return None

    def _wrong_id(self, expected: dict[str, Any], actual: dict[str, Any]) -> Difference | None:
        left, right = expected.get("id"), actual.get("id")
        side = "agent" if "method" in expected else "client"
        if not self._names.clash((side, left), (side, right)):
            return None
        return "id", left, right, f"swapped id in {name_of(expected)}"

    def _wrong_reference(
        self, expected: dict[str, Any], actual: dict[str, Any]
    ) -> Difference | None:
        there, back = self._events_there, self._events_back
        for (path, left), (_, right) in zip(references(expected), references(actual), strict=True):
            # The same numbers are no cause of their own: where they mean other events, one of
            # those was put in or taken out without renumbering, and is told itself.
            if left != right and mapped(left, there) != [k for k in right if k in back]:
                return path, left, right, f"{name_of(expected)} refers to other events"
        return None

    def _skeleton(self, record: dict[str, Any]) -> str:
        return without_numbers(fingerprint(self._bare(record)))

    def _bare(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record without what is compared by bijection."""
        if self._log:
            bare: dict[str, Any] = without_references(record)
            return bare
        # Normalizing made a number of it; what is none is no JSON-RPC id.
        return {**record, "id": "id"} if type(record.get("id")) is int else record


def session_name(header: Mapping[str, Any], number: int) -> str:
    """Return how a session is called: by its lineage, else by its number from 1."""
    lineage = header.get("lineage")
    return lineage if isinstance(lineage, str) else str(number + 1)


def name_of(record: dict[str, Any]) -> str:
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


def _without_place(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header without its session's place: logs are paired before they are compared."""
    return {key: value for key, value in header.items() if key != "createdAt"}


def _paths_of(value: Json, token: str, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _paths_of(child, token, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _paths_of(child, token, f"{path}[{index}]")
    elif isinstance(value, str) and token in value:
        yield path
