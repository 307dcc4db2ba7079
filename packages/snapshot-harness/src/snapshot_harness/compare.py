"""Comparison of two runs: the first cause first, later effects folded. No I/O."""

from collections.abc import Sequence

from snapshot_harness.causes import Cause, fold
from snapshot_harness.normalize import Normalized, NormalizedLog
from snapshot_harness.records import Bijection, Records, session_name
from snapshot_harness.values import fingerprint


def compare(expected: Normalized, actual: Normalized) -> list[Cause]:
    """Return every difference, the earliest first; none if both are equal.

    Equal means: by value with strict types, up to a bijection of numbered
    tokens, of JSON-RPC ids and of references between events.
    """
    if _identical(expected, actual):
        return []
    names = Bijection()
    found: list[tuple[tuple[int, int, int, int], Cause]] = []
    for number, (left, right) in enumerate(_paired(expected.logs, actual.logs)):
        causes = _compare_logs(left, right, names, number)
        found += [((c.turn or 0, 0, number, k), c) for k, c in enumerate(causes)]
    causes = Records.of_frames(expected.transcript, actual.transcript, names).causes()
    found += [((c.turn or 0, 1, 0, k), c) for k, c in enumerate(causes)]
    return fold([cause for _, cause in sorted(found, key=lambda item: item[0])])


def _identical(expected: Normalized, actual: Normalized) -> bool:
    """Tell quickly of most runs that they are as they should be."""
    sides = [
        [*([log.header, log.events] for log in side.logs), side.transcript]
        for side in (expected, actual)
    ]
    return fingerprint(sides[0]) == fingerprint(sides[1])


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
    left: NormalizedLog | None, right: NormalizedLog | None, names: Bijection, number: int
) -> list[Cause]:
    if left is None:
        return [] if right is None else [_lone(right, number, missing=False)]
    if right is None:
        return [_lone(left, number, missing=True)]
    return Records.of_logs(left, right, names, number).causes()


def _lone(log: NormalizedLog, number: int, *, missing: bool) -> Cause:
    texts = (f"a session with {len(log.events)} events", "nothing")
    return Cause(
        surface="log",
        file=log.name if missing else _file_name(number),
        session=session_name(log.header, number),
        turn=None,
        step=None,
        line=1 if missing else None,
        path="",
        expected=texts[not missing],
        actual=texts[missing],
        message="this session is missing" if missing else "an unexpected session",
        folded=len(log.events),
    )


def _file_name(number: int) -> str:
    return "session.jsonl" if number == 0 else f"session.{number}.jsonl"
