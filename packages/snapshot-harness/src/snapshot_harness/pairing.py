"""Which record of a run is which of the fixture: equal, changed, or moved. No I/O."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from snapshot_harness.align import Pair, align

KindOf = tuple[Callable[[int], Hashable], Callable[[int], Hashable]]
"""The kind of a committed record, and of an actual one, by their places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Pairs in order; what has none; and where the equal of something missing came instead."""

    pairs: list[Pair]
    missing: list[int]
    extra: list[int]
    moved: dict[int, int]


def pair_records(left: Sequence[str], right: Sequence[str], kinds: Sequence[KindOf]) -> Pairing:
    """Pair records by their fingerprints, then, in the gaps, by their kinds, the closest first."""
    equal = align(left, right)
    matched_l, matched_r = {a for a, _ in equal}, {b for _, b in equal}
    missing = [k for k in range(len(left)) if k not in matched_l]
    extra = [k for k in range(len(right)) if k not in matched_r]
    moved = _moved(left, right, missing, extra)
    came = set(moved.values())
    pairs = list(equal)
    for (a, b), (c, d) in pairwise([(-1, -1), *equal, (len(left), len(right))]):
        lefts = [k for k in range(a + 1, c) if k not in moved]
        rights = [k for k in range(b + 1, d) if k not in came]
        pairs += _alike(lefts, rights, kinds)
    changed_l, changed_r = {a for a, _ in pairs}, {b for _, b in pairs}
    return Pairing(
        pairs=sorted(pairs),
        missing=[k for k in missing if k not in changed_l],
        extra=[k for k in extra if k not in changed_r and k not in came],
        moved=moved,
    )


def _moved(
    left: Sequence[str], right: Sequence[str], missing: Sequence[int], extra: Sequence[int]
) -> dict[int, int]:
    """Pair what is missing in one place with what is unexpected in another, and equal."""
    twins: dict[str, list[int]] = {}
    for place in reversed(extra):
        twins.setdefault(right[place], []).append(place)
    return {place: twins[left[place]].pop() for place in missing if twins.get(left[place])}


def _alike(lefts: Sequence[int], rights: Sequence[int], kinds: Sequence[KindOf]) -> list[Pair]:
    """Pair records that are of one kind, and so the same one, changed."""
    if not lefts or not rights or not kinds:
        return []
    (kind_l, kind_r), *looser = kinds
    pairs = align([kind_l(k) for k in lefts], [kind_r(k) for k in rights])
    found = [(lefts[a], rights[b]) for a, b in pairs]
    for (a, b), (c, d) in pairwise([(-1, -1), *pairs, (len(lefts), len(rights))]):
        found += _alike(lefts[a + 1 : c], rights[b + 1 : d], looser)
    return found
