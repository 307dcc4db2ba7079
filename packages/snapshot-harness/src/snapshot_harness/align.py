"""Which record of one list is which of another: bounded, whatever the lists hold. No I/O."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

_SMALL = 200_000
"""Up to this many pairs, a gap is matched exactly; above it, position by position."""

Pair = tuple[int, int]


def align(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return the pairs of equal records, in order.

    Records that are unique on both sides hold the rest together, as in a
    patience diff, so the cost does not hang on how much differs.
    """
    return list(_align(left, right, (0, len(left)), (0, len(right))))


def _align(
    left: Sequence[Hashable], right: Sequence[Hashable], span_l: Pair, span_r: Pair
) -> Iterator[Pair]:
    (low_l, high_l), (low_r, high_r) = span_l, span_r
    while low_l < high_l and low_r < high_r and left[low_l] == right[low_r]:
        yield low_l, low_r
        low_l, low_r = low_l + 1, low_r + 1
    tail = 0
    while low_l < high_l and low_r < high_r and left[high_l - 1] == right[high_r - 1]:
        high_l, high_r, tail = high_l - 1, high_r - 1, tail + 1
    if low_l < high_l and low_r < high_r:
        yield from _middle(left, right, (low_l, high_l), (low_r, high_r))
    yield from ((high_l + k, high_r + k) for k in range(tail))


def _middle(
    left: Sequence[Hashable], right: Sequence[Hashable], span_l: Pair, span_r: Pair
) -> Iterator[Pair]:
    anchors = _anchors(left, right, span_l, span_r)
    if not anchors:
        yield from _gap(left, right, span_l, span_r)
        return
    at_l, at_r = span_l[0], span_r[0]
    for anchor_l, anchor_r in anchors:
        yield from _align(left, right, (at_l, anchor_l), (at_r, anchor_r))
        yield anchor_l, anchor_r
        at_l, at_r = anchor_l + 1, anchor_r + 1
    yield from _align(left, right, (at_l, span_l[1]), (at_r, span_r[1]))


def _gap(
    left: Sequence[Hashable], right: Sequence[Hashable], span_l: Pair, span_r: Pair
) -> Iterator[Pair]:
    """Match a stretch in which nothing is unique on both sides."""
    (low_l, high_l), (low_r, high_r) = span_l, span_r
    if (high_l - low_l) * (high_r - low_r) > _SMALL:
        places = zip(range(low_l, high_l), range(low_r, high_r), strict=False)
        yield from ((a, b) for a, b in places if left[a] == right[b])
        return
    matcher = SequenceMatcher(None, left[low_l:high_l], right[low_r:high_r], autojunk=False)
    for block in matcher.get_matching_blocks():
        yield from ((low_l + block.a + k, low_r + block.b + k) for k in range(block.size))


def _anchors(
    left: Sequence[Hashable], right: Sequence[Hashable], span_l: Pair, span_r: Pair
) -> list[Pair]:
    """Return the longest rising chain of records that are unique on both sides."""
    places_l = _unique(left, span_l)
    places_r = _unique(right, span_r)
    pairs = [(places_l[value], places_r[value]) for value in places_l if value in places_r]
    heads: list[int] = []
    chains: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        slot = bisect_left(heads, place)
        before.append(chains[slot - 1] if slot else -1)
        heads[slot : slot + 1] = [place]
        chains[slot : slot + 1] = [index]
    chain: list[Pair] = []
    index = chains[-1] if chains else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _unique(values: Sequence[Hashable], span: Pair) -> dict[Hashable, int]:
    counts = Counter(values[span[0] : span[1]])
    return {values[place]: place for place in range(*span) if counts[values[place]] == 1}
