"""Which record is which: equal ones, then those of one kind, the closest kind first."""

from snapshot_harness.pairing import KindOf, Pairing, pair_records


def kind_of(left: list[str], right: list[str], letters: int) -> KindOf:
    return (lambda k: left[k][:letters], lambda k: right[k][:letters])


def paired(left: list[str], right: list[str]) -> Pairing:
    """Pair records whose closest kind is their first two letters, and the looser one the first."""
    return pair_records(left, right, [kind_of(left, right, 2), kind_of(left, right, 1)])


def test_a_changed_record_is_paired_with_the_one_of_its_kind() -> None:
    found = paired(["ax1", "bx1", "cx1"], ["ax1", "bx2", "cx1"])

    assert found == Pairing(pairs=[(0, 0), (1, 1), (2, 2)], missing=[], extra=[], moved={})


def test_where_no_closer_kind_is_left_the_looser_one_pairs() -> None:
    found = paired(["ax1", "by1", "cx1"], ["ax2", "bz1", "cx2"])

    assert found.pairs == [(0, 0), (1, 1), (2, 2)]


def test_the_closest_kind_wins_over_the_first_of_a_looser_one() -> None:
    found = paired(["ax1"], ["ay1", "ax2"])

    assert (found.pairs, found.extra) == ([(0, 1)], [0])


def test_before_and_after_a_pair_of_a_closer_kind_the_looser_one_pairs() -> None:
    found = paired(["ax1", "bb1", "ay1"], ["az1", "bb2", "aw1"])

    assert found.pairs == [(0, 0), (1, 1), (2, 2)]


def test_records_of_no_common_kind_are_missing_and_extra() -> None:
    found = paired(["ax1"], ["bx1"])

    assert found == Pairing(pairs=[], missing=[0], extra=[0], moved={})


def test_an_equal_record_elsewhere_is_the_same_one_moved() -> None:
    found = paired(["ax1", "bx1", "cx1"], ["cx1", "ax1", "bx1"])

    assert found == Pairing(pairs=[(0, 1), (1, 2)], missing=[2], extra=[], moved={2: 0})
