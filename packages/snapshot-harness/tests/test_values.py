import pytest

from snapshot_harness.credentials import redact
from snapshot_harness.json_value import Json, as_text
from snapshot_harness.values import (
    ABSENT,
    differences,
    fingerprint,
    first_difference,
    in_sight,
    shown,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), ("1", 1), ({}, []), (None, False), (2**70, 2**70 + 1), ("\ud83d", "?")],
)
def test_unlike_values_have_unlike_fingerprints(left: Json, right: Json) -> None:
    assert fingerprint(left) != fingerprint(right)


def test_a_fingerprint_does_not_hang_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": {"d": 2, "c": 3}}) == fingerprint(
        {"b": {"c": 3, "d": 2}, "a": 1}
    )
    assert fingerprint({"b": "\ud83d", "a": 1}) == fingerprint({"a": 1, "b": "\ud83d"})


def test_differences_come_in_the_order_of_the_expected_value() -> None:
    expected = {"b": 1, "a": [1, {"x": 1}], "gone": 2}
    actual = {"new": 3, "a": [2, {"x": 1, "y": 2}, 5], "b": 1}

    assert list(differences(expected, actual)) == [
        ("a[0]", 1, 2),
        ("a[1].y", ABSENT, 2),
        ("a[2]", ABSENT, 5),
        ("gone", 2, ABSENT),
        ("new", ABSENT, 3),
    ]


def test_numbers_of_tokens_are_no_difference() -> None:
    assert list(differences("of {{uuid:1}}", "of {{uuid:2}}")) == []
    assert list(differences("of {{uuid:1}}", "of {{session:1}}")) != []


@pytest.mark.parametrize(
    ("actual", "fits"),
    [("id 17 here", True), ("id  here", True), ("id 17", False), ("at 17 here", False)],
)
def test_a_placeholder_stands_for_any_text(actual: str, *, fits: bool) -> None:
    found = list(differences("id {{fromRequest:(\\d{2})}} here", actual))

    assert (found == []) == fits


@pytest.mark.parametrize(
    ("value", "picture"),
    [
        (ABSENT, "nothing"),
        (None, "null"),
        ("a\nb", '"a\\nb"'),
        ("é", '"é"'),
        ({"a": 1.0}, '{"a":1.0}'),
        ("\ud83d", '"\\ud83d"'),
    ],
)
def test_a_value_is_shown_on_one_line(value: Json, picture: str) -> None:
    assert shown(value) == picture


def test_a_long_value_is_cut_and_its_length_told() -> None:
    assert shown("x" * 1000) == f'"{"x" * 160}" … and 840 more characters'


def test_what_differs_in_a_long_value_is_in_sight() -> None:
    text = shown("x" * 500 + "HERE" + "x" * 500, "x" * 500 + "THERE")

    assert text.startswith('… 447 characters, then "x')
    assert "HERE" in text
    assert "HERE" in shown(["x" * 500 + "HERE"], ["x" * 500])


@pytest.mark.parametrize(
    ("left", "right", "place"),
    [("", "", 0), ("a", "", 0), ("abc", "abd", 2), ("abc", "abcd", 3), ("x", "y", 0)],
)
def test_the_first_difference_of_two_texts_is_found(left: str, right: str, place: int) -> None:
    assert first_difference(left, right) == place


@pytest.mark.parametrize("place", range(17))
def test_the_first_difference_is_found_wherever_it_is(place: int) -> None:
    assert first_difference("a" * place + "b" + "a" * 5, "a" * 30) == place


SECRET = "sk-" + "a1B2" * 10


@pytest.mark.parametrize("room", range(0, 220, 7))
@pytest.mark.parametrize("around", [" ", "\n", '"'])
def test_what_is_shown_holds_no_part_of_a_credential(room: int, around: str) -> None:
    text = "x " * (room // 2) + around + SECRET + around + "y " * 200
    other = "x " * (room // 2) + around + "nothing" + around + "z " * 200
    record, beside = {"text": text}, {"text": other}

    for picture in (shown(text, other), shown(record, beside), shown(text), as_text(record, 100)):
        assert "sk-a1" not in redact(picture, {})
        assert "a1B2" not in redact(picture, {})


def test_a_word_without_end_is_cut_all_the_same() -> None:
    assert len(shown("x" * 5_000_000, "y")) < 1000
    assert len(as_text("x" * 5_000_000, 100)) < 1000


@pytest.mark.parametrize("room", range(0, 260, 7))
def test_the_lines_of_a_diff_hold_no_part_of_a_credential(room: int) -> None:
    sides = [
        f"{sign}{'x ' * (room // 2)}{SECRET} {word} {'y ' * 200}"
        for sign, word in zip("-+", "ab", strict=True)
    ]

    for line in in_sight(["@@ -1 +1 @@", *sides]):
        assert "a1B2" not in redact(line, {})


def test_what_differs_in_two_lines_of_a_diff_is_in_sight() -> None:
    gone, come = in_sight([f"-{'x ' * 450}before {'y ' * 450}", f"+{'x ' * 450}after {'y ' * 450}"])

    assert gone.startswith("-… x ")
    assert " before y " in gone
    assert come.startswith("+… x ")
    assert " after y " in come
    assert in_sight(["-before", "+after"]) == ["-before", "+after"]
