import pytest

from snapshot_harness.json_value import Json
from snapshot_harness.rules import Rule, is_path

TOKEN = "{{x}}"  # noqa: S105  a placeholder


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a", {"a": 1, "b": 1}, {"a": TOKEN, "b": 1}),
        ("$.a.b", {"a": {"b": [1]}}, {"a": {"b": TOKEN}}),
        ("a[1].b", {"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": TOKEN}]}),
        ("a.1", {"a": [1, 2]}, {"a": [1, TOKEN]}),
        ("a.*", {"a": {"b": 1, "c": 2}}, {"a": {"b": TOKEN, "c": TOKEN}}),
        ("a[*].b", {"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": TOKEN}, {"c": 2}]}),
        ("**.pid", {"a": [{"pid": 1}], "pid": 2}, {"a": [{"pid": TOKEN}], "pid": TOKEN}),
        ("a.**.b", {"a": {"c": {"b": 1}}, "b": 2}, {"a": {"c": {"b": TOKEN}}, "b": 2}),
        ("1", {"1": "x"}, {"1": TOKEN}),
        ("a.b", {"a": 5}, {"a": 5}),
        ("a[7]", {"a": [1]}, {"a": [1]}),
    ],
)
def test_a_path_names_values(path: str, before: Json, after: Json) -> None:
    assert Rule(token=TOKEN, path=path).in_value(before) == after


def test_a_rule_does_one_thing() -> None:
    assert Rule(token=TOKEN, path="a").in_text("a") == "a"
    assert Rule(token=TOKEN, pattern="a").in_value({"a": "a"}) == {"a": "a"}


@pytest.mark.parametrize(
    ("pattern", "before", "after"),
    [
        (r"\d+", "1 and 22", "{{x}} and {{x}}"),
        (r"pid (\d+)", "pid 7, 7", "pid {{x}}, 7"),
        (r"pid(?: (\d+))?", "pid", "pid"),
        (r"\d*", "a", "a"),
        (r"x", "{{x}} x", "{{x}} {{x}}"),
        (r"a \S+ b", "a {{cwd}} b", "{{x}}"),
        (r"a \{\{c", "a {{cwd}}", "a {{cwd}}"),
        (r"wd\}\} b", "{{cwd}} b", "{{cwd}} b"),
    ],
)
def test_a_pattern_takes_tokens_whole_or_not_at_all(pattern: str, before: str, after: str) -> None:
    rule = Rule(token=TOKEN, pattern=pattern)

    assert rule.in_text(before) == after
    assert rule.in_text(after) == after


def test_a_pattern_keeps_the_spans_it_is_told() -> None:
    rule = Rule(token=TOKEN, pattern=r"\d+")

    assert rule.in_text("12-34 56", keep=[(0, 5)]) == "12-34 {{x}}"


@pytest.mark.parametrize("path", ["a", "$.a", "a.b[0]", "a[*].b", "a.*", "**.pid", "a.**.b", "1"])
def test_a_path_is_one(path: str) -> None:
    assert is_path(path)


@pytest.mark.parametrize("path", ["", "$", "a..b", "a[", "a[b]", "a.", ".a", "a***", "a[0]b"])
def test_what_no_rule_can_follow_is_no_path(path: str) -> None:
    assert not is_path(path)
