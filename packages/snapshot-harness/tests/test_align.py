import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_harness.align import align

LETTERS = st.text(alphabet="abcdef", max_size=14)


@given(left=LETTERS, right=LETTERS)
def test_pairs_are_equal_records_in_rising_order(left: str, right: str) -> None:
    pairs = align(left, right)

    assert all(left[a] == right[b] for a, b in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


@given(left=LETTERS, right=LETTERS)
def test_no_equal_records_are_left_between_two_pairs(left: str, right: str) -> None:
    pairs = [(-1, -1), *align(left, right), (len(left), len(right))]

    for (a, b), (c, d) in pairwise(pairs):
        assert set(left[a + 1 : c]).isdisjoint(right[b + 1 : d])


@given(text=LETTERS)
def test_equal_lists_are_paired_whole(text: str) -> None:
    assert align(text, text) == [(k, k) for k in range(len(text))]


@given(text=st.text(alphabet="abc", max_size=12), place=st.integers(0, 12))
def test_one_inserted_record_costs_one_pair_at_most(text: str, place: int) -> None:
    more = text[:place] + "X" + text[place:]

    assert len(align(text, more)) == len(text)
    assert len(align(more, text)) == len(text)


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("", "abc", []),
        ("abc", "xyz", []),
        ("abc", "bcd", [(1, 0), (2, 1)]),
        ("xaay", "xaaaz", [(0, 0), (1, 1), (2, 2)]),
        ("1a2b3", "a9b", [(1, 0), (3, 2)]),
        ("ab12", "12ab", [(2, 0), (3, 1)]),
        ("abcz", "zabc", [(0, 1), (1, 2), (2, 3)]),
        ("a", "aa", [(0, 0)]),
        ("yaa", "zaaa", [(1, 2), (2, 3)]),
    ],
)
def test_known_pairs(left: str, right: str, pairs: list[tuple[int, int]]) -> None:
    assert align(left, right) == pairs


def test_unlike_lists_of_ten_thousand_are_quick() -> None:
    left = [f"l{n}" for n in range(10_000)]
    right = [f"r{n}" for n in range(10_000)]
    started = time.process_time()

    assert align(left, right) == []
    assert time.process_time() - started < 5


def test_long_lists_of_repeated_records_are_paired_by_place() -> None:
    left, right = ["x", *"ab" * 3000, "y"], ["z", *"ab" * 3000, "w"]
    started = time.process_time()

    assert align(left, right) == [(k, k) for k in range(1, 6001)]
    assert time.process_time() - started < 5
