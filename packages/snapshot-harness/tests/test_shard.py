"""A suite cut into shards: nothing is lost, nothing runs twice."""

from hypothesis import given
from hypothesis import strategies as st

from snapshot_harness.shard import Shard, read_shard


@given(scenarios=st.integers(0, 200), count=st.integers(1, 20))
def test_every_scenario_is_in_exactly_one_shard_and_the_shards_are_level(
    scenarios: int, count: int
) -> None:
    parts = [Shard(number, count).of(range(scenarios)) for number in range(1, count + 1)]

    assert sorted(one for part in parts for one in part) == list(range(scenarios))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_neighbours_are_in_different_shards() -> None:
    assert list(read_shard("2/3").of(["a", "b", "c", "d", "e"])) == ["b", "e"]


def test_only_the_first_shard_has_the_guards() -> None:
    assert [read_shard(text).has_guards for text in ("1/1", "1/2", "2/2")] == [True, True, False]
