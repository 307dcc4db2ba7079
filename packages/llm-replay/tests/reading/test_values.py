import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import json_values

from llm_replay.values import copied, map_strings, nests_deeper, same, shown, strings

DEEP = 100_000


def nested(levels: int, inner: object = "x", *, keyed: bool = False) -> Any:  # noqa: ANN401  JSON
    for _ in range(levels):
        inner = {"a": inner} if keyed else [inner]
    return inner


@pytest.mark.parametrize("keyed", [False, True])
def test_no_depth_is_too_much_for_walking(*, keyed: bool) -> None:
    deep = nested(DEEP, keyed=keyed)

    assert list(strings(map_strings(copied(deep), str.upper))) == ["X"]
    assert same(deep, copied(deep))
    assert not same(deep, nested(DEEP, "y", keyed=keyed))
    assert len(shown(deep)) < 100
    assert (nests_deeper(deep, DEEP - 1), nests_deeper(deep, DEEP)) == (True, False)


@given(json_values, json_values)
def test_values_are_the_same_if_they_are_equal(one: object, other: object) -> None:
    assert same(one, other) == (one == other)
    assert same(one, copy.deepcopy(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [([1], [1, 2]), ({"a": 1}, {"b": 1}), ([1], {"a": 1}), ({"a": [1]}, {"a": [2]}), ([], None)],
)
def test_values_differ_in_length_keys_kind_or_content(one: object, other: object) -> None:
    assert not same(one, other)


@given(json_values)
def test_a_copy_is_equal_and_shares_nothing(value: object) -> None:
    before = copy.deepcopy(value)
    found = copied([value])
    map_strings(found, str.upper)
    for part in _containers(found):
        part.clear()

    assert value == before


def _containers(value: Any) -> list[Any]:  # noqa: ANN401  JSON
    inner = value.values() if isinstance(value, dict) else value
    parts = [part for item in inner if isinstance(item, dict | list) for part in _containers(item)]
    return [*parts, value]


def test_what_is_no_json_is_copied_as_well() -> None:
    odd: Any = [{"a": ({"b": []},)}]
    found = copied(odd)
    odd[0]["a"][0]["b"].append(1)

    assert found == [{"a": ({"b": []},)}]


@pytest.mark.parametrize(
    ("value", "levels"), [(1, 0), ("[[", 0), ([], 1), ({"a": [1]}, 2), ([1, {"a": {}}, []], 3)]
)
def test_a_value_nests_as_deep_as_its_brackets(value: object, levels: int) -> None:
    assert not nests_deeper(value, levels)
    assert nests_deeper(value, levels - 1) is (levels > 0)


@given(json_values)
def test_a_quote_never_fails(value: object) -> None:
    assert shown(value)


@pytest.mark.parametrize(
    ("value", "quote"),
    [
        ("it's", '"it\'s"'),
        (None, "None"),
        (["a", {"b": 1.5}], "['a', {'b': 1.5}]"),
        ([[[[[[[1]]]]]]], "[[[[[[[...]]]]]]]"),
        (10**199, "1" + "0" * 199),
        (-(10**5000), "a very long integer"),
        ("a" * 300, f"'{'a' * 97}...{'a' * 98}'"),
    ],
    ids=[*"abcdefg"],
)
def test_a_quote_is_what_python_writes_cut_where_it_is_long(value: object, quote: str) -> None:
    assert shown(value) == quote


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=20))
def test_depth_is_the_same_told_by_levels_or_by_brackets(value: object) -> None:
    depth = deepest = 0
    for mark in repr(value):
        depth += {"[": 1, "]": -1}.get(mark, 0)
        deepest = max(deepest, depth)

    assert [nests_deeper(value, levels) for levels in range(deepest + 1)] == (
        [True] * deepest + [False]
    )
