import itertools
import re
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import Json, any_text, chunks, json_values, text

from llm_replay import placeholders
from llm_replay.exceptions import PatternTimeoutError, PlaceholderError
from llm_replay.placeholders import has_placeholder, resolve_scripted_entry, size_of


def request(*messages: object) -> SimpleNamespace:
    return SimpleNamespace(messages=messages)


def filled(template: str, *messages: object) -> str:
    found = resolve_scripted_entry(chunks(text(template)), request(*messages))
    piece: str = found["chunks"][0]["text"]
    return piece


def refusal(template: str, *messages: object) -> str:
    with pytest.raises(PlaceholderError) as caught:
        filled(template, *messages)
    assert caught.value.kind == "placeholder"
    return str(caught.value)


def test_the_last_match_is_filled_in() -> None:
    assert filled("<{{fromRequest:id-[0-9]+}}>", "id-1", {"text": "id-2 id-34 id-"}) == "<id-34>"


def test_group_one_is_filled_in_where_it_took_part() -> None:
    assert filled('{{fromRequest:"id":"([^"]*)"}}', '{"id":"a"}', '{"id":""}') == ""
    assert filled("{{fromRequest:(a)|b}}", "a b") == "b"
    assert filled("{{fromRequest:(a)(b)}}", "ab") == "a"


def test_a_pattern_may_end_in_braces_of_its_own() -> None:
    assert filled("{{fromRequest:[0-9]{4}}}!", "12345") == "1234!"
    assert filled("{{fromRequest:x{2,}}}", "xxx") == "xxx"


def test_several_placeholders_are_filled_in_and_what_they_find_is_not_read_again() -> None:
    messages = ["{{fromRequest:x}} 7"]

    assert filled("{{fromRequest:\\d}}{{fromRequest:.+(?= 7)}}", *messages) == "7{{fromRequest:x}}"


def test_every_string_of_the_messages_is_searched_and_nothing_else() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "a"}, {"n": 1, "key": None}]}

    assert filled("{{fromRequest:(?s)\\A(.+)\\Z}}", message) == "user\ntext\na"
    assert "finds nothing" in refusal("{{fromRequest:key|1|None}}", message)


def test_keys_like_integers_come_first_as_in_the_reference() -> None:
    message = {"b": "1", "10": "2", "9": "3", "01": "4", "4294967295": "5", "\u0661": "6"}

    assert filled("{{fromRequest:(?s)\\A(.+)\\Z}}", message) == "3\n2\n1\n4\n5\n6"


def test_every_string_of_an_entry_is_filled_in_and_keys_are_left_alone() -> None:
    placeholder = "{{fromRequest:w.*}}"
    entry: Json = {
        "kind": "throw",
        "chunks": [{"type": "block-end", placeholder: [placeholder]}],
        "message": placeholder,
        "code": placeholder,
    }

    assert resolve_scripted_entry(entry, request("word")) == {
        "kind": "throw",
        "chunks": [{"type": "block-end", placeholder: ["word"]}],
        "message": "word",
        "code": "word",
    }
    assert entry["message"] == placeholder


def test_what_stands_around_placeholders_is_changed_and_what_they_find_is_not() -> None:
    entry = chunks(text("a{{fromRequest:a+}}a"), text("a"))
    found = resolve_scripted_entry(entry, request("aa"), outside=str.upper)

    assert [chunk["text"] for chunk in found["chunks"]] == ["AaaA", "A"]


def test_a_request_without_placeholders_is_not_looked_at() -> None:
    entry = chunks(text("{{cwd}}"))

    assert not has_placeholder(entry)
    assert resolve_scripted_entry(entry, None) == entry
    assert has_placeholder(chunks(text("x{{fromRequest:")))
    assert not has_placeholder({"{{fromRequest:a}}": 1})


def test_a_pattern_that_finds_nothing_is_refused_with_where_it_searched() -> None:
    assert refusal("{{fromRequest:b+}}", {"text": "aaa"}) == (
        "the fromRequest pattern 'b+' finds nothing in the request\n"
        "  It was searched in every string of the messages: 'aaa'\n"
        "  hint: the request is not what the pattern was written for; look at its last message"
    )
    assert f": '…{'a' * 200}'\n" in refusal("{{fromRequest:b+}}", "a" * 300)


@pytest.mark.parametrize("bad", ["(unclosed", "[z-a]", "a{1,99999999999999999999}", "(?a)(?u)"])
def test_a_pattern_that_is_none_is_refused(bad: str) -> None:
    told = refusal(f"{{{{fromRequest:{bad}}}}}", "a")

    assert told.startswith(f"the fromRequest pattern {bad!r} is not a regular expression: ")
    assert told.endswith("\n  hint: patterns are Python's")


def test_a_pattern_that_calls_itself_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def finditer(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("regex.finditer", finditer)  # or it takes all the memory there is
    told = "the fromRequest pattern '(?R)' is not a regular expression: it needs too much memory"

    assert refusal("{{fromRequest:(?R)}}", "a").startswith(told)


def test_keys_of_a_request_may_be_digits_without_end() -> None:
    assert filled("{{fromRequest:a|b}}", {"9" * 5000: "a", "2": "b"}) == "a"


def test_a_pattern_that_nests_too_deeply_is_refused() -> None:
    assert "is not a regular expression" in refusal("{{fromRequest:" + "(?:" * 330 + "}}", "a")


@pytest.mark.parametrize(
    "large",
    [
        "a" * 1001,
        f"\\{'1' * 5000}",
        "a{2001}",
        "a{99999999999999999999}",
        "(?:(?:a{100}){100}){100}",
        f"{'(?:' * 16}a{'|b){2}' * 16}",
        "[a-z{]{2001,}?",
    ],
)
def test_a_pattern_that_would_take_long_to_compile_is_refused_before_it_is(
    large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("regex.finditer")
    told = refusal(f"{{{{fromRequest:{large}}}}}", "a")

    assert re.match(r"the fromRequest pattern '[^\n]{1,200}' is too large\n", told)
    assert told.endswith(
        "\n  It may have 1000 characters, and repeat at least 2000 elements."
        "\n  hint: say what stands around the text that you mean, not the text itself"
    )


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        *((r"", 0), (r"abc", 3), (r"\d\(", 2), (r"[(){9}\]]x", 2), (r"[]a]{3}", 3), (r"a{4}", 4)),
        *((r"a{0}", 1), (r"a{2,9}", 2), (r"a{,9}", 5), (r"ab{3}c", 5), (r"(ab){3}", 6)),
        *((r"((a){2}b){3}", 9), (r"a)b(c", 4), (r"(a|b){2}", 6), (r"x{5}y{5}", 10)),
    ],
)  # fmt: skip
def test_the_size_of_a_pattern_counts_what_it_repeats_at_least(pattern: str, size: int) -> None:
    assert size_of(pattern) == size


@pytest.mark.parametrize(
    "bad", ["{{fromRequest:a", "{{fromRequest:a}", "{{fromRequest:a}}{{fromRequest:"]
)
def test_a_placeholder_without_an_end_is_refused(bad: str) -> None:
    assert refusal(bad, "a") == (
        f"a fromRequest placeholder never ends, in {bad!r}\n  hint: close it with two braces"
    )


def test_a_pattern_that_takes_too_long_is_stopped_while_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placeholders, "TIMEOUT_S", 0.2)
    caught: list[Exception] = []

    def search() -> None:
        try:
            filled("{{fromRequest:(a|aa)+$}}", "a" * 80 + "b")
        except PatternTimeoutError as error:
            caught.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    rounds = 0
    while thread.is_alive():
        rounds += 1

    assert rounds > 100
    [told] = map(str, caught)
    assert told == (
        "the fromRequest pattern '(a|aa)+$' takes longer than 0.2 s\n"
        "  hint: repeat nothing that repeats itself, or anchor the pattern to a word"
    )


def test_many_matches_that_take_too_long_together_are_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = itertools.count(0.0, 0.4)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))

    with pytest.raises(PatternTimeoutError, match=r"takes longer than 1 s"):
        filled("{{fromRequest:a}}", "aaaaa")


@given(json_values, st.lists(json_values, max_size=2))
def test_entries_without_placeholders_stay_what_they_are(
    entry: object, messages: list[object]
) -> None:
    assert resolve_scripted_entry({"x": entry}, request(*messages)) == {"x": entry}


@given(any_text, any_text, any_text)
def test_random_patterns_fill_in_or_are_refused_and_nothing_else(
    before: str, pattern: str, message: str
) -> None:
    try:
        found = filled(before + "{{fromRequest:" + pattern + "}}", message)
    except PlaceholderError as error:
        assert str(error)  # noqa: PT017  which of the two it is does not matter
    else:
        assert found.startswith(before)
