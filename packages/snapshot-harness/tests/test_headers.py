import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_harness.headers import (
    SidecarError,
    Told,
    collect,
    judge,
    read_sidecars,
    stable_tools,
    system_bytes,
    tools_bytes,
)
from snapshot_harness.json_value import Json
from snapshot_harness.normalize import HeaderPair

TOOLS = [{"name": "bash", "description": "Run a command."}, {"name": "read", "description": "R"}]


def test_each_distinct_header_is_collected_once_in_order() -> None:
    pairs = [
        HeaderPair(session=0, system="a", tools=[]),
        HeaderPair(session=0, system="b", tools=[]),
        HeaderPair(session=1, system="a", tools=[]),
        HeaderPair(session=1, system=None, tools=None),
    ]

    assert collect(pairs) == [Told("a", []), Told("b", []), Told(None, None)]


def test_a_prompt_of_blocks_is_kept_as_json_text() -> None:
    told = collect([HeaderPair(session=0, system=[{"text": "a"}], tools=1)])

    assert told == [Told('[\n  {\n    "text": "a"\n  }\n]', 1)]
    assert read_sidecars(system_bytes(told), tools_bytes(told)) == told


def test_sidecars_read_like_documents() -> None:
    headers = [Told("You are here.\n\nBe kind.", TOOLS[:1]), Told(None, None)]

    assert system_bytes(headers).decode() == (
        "<!-- header 1 -->\nYou are here.\n\nBe kind.\n<!-- header 2 without prompt -->\n"
    )
    assert json.loads(tools_bytes(headers)) == [TOOLS[:1], None]
    assert tools_bytes(headers).endswith(b"\n]\n")


LINES = st.sampled_from(
    ["", "a", "<!-- header 1 -->", "\\<!-- header 2 -->", "<!-- header 1 without prompt -->", "\r"]
)
PROMPTS = st.none() | st.lists(LINES, max_size=4).map("\n".join) | st.text(max_size=5)


@given(prompts=st.lists(PROMPTS, max_size=3))
def test_what_is_written_is_read_again(prompts: list[str | None]) -> None:
    headers = [Told(prompt, [{"name": str(n)}]) for n, prompt in enumerate(prompts)]

    assert read_sidecars(system_bytes(headers), tools_bytes(headers)) == headers


@pytest.mark.parametrize(
    ("system", "tools", "problem"),
    [
        (b"<!-- header 1 -->\na", b"[1]", "last line does not end"),
        (b"a\n", b"[]", "before the first"),
        (b"<!-- header 2 -->\n", b"[1]", "header 2 stands where 1 should"),
        (b"<!-- header 1 without prompt -->\na\n", b"[1]", "before the first"),
        (b"<!-- header 1 -->\na\n", b"{", "not JSON"),
        (b"<!-- header 1 -->\na\n", b"[]", "1 prompts beside 0"),
        (b"<!-- header 1 -->\na\n", b"{}", "beside no list"),
    ],
)
def test_what_refresh_does_not_write_is_refused(system: bytes, tools: bytes, problem: str) -> None:
    with pytest.raises(SidecarError, match=problem):
        read_sidecars(system, tools)


PINNED = [Told("You are a coding agent.\nUse tools.", TOOLS), Told("Plan.", [])]


def test_headers_that_are_pinned_pass_in_any_order() -> None:
    assert judge("default", PINNED, {"a": [PINNED[1]], "b": PINNED}).passed
    assert judge("default", PINNED, {}).passed


def test_one_changed_word_is_one_problem_with_all_scenarios_concerned() -> None:
    told = Told("You are a careful agent.\nUse tools.", TOOLS)

    verdict = judge("default", PINNED, {"b": [told], "a": [told, PINNED[1]]})

    assert not verdict.passed
    (problem,) = verdict.problems
    assert problem == (
        "the prompt differs from the pinned one:\n"
        "  @@ -1,2 +1,2 @@\n"
        "  -You are a coding agent.\n"
        "  +You are a careful agent.\n"
        "   Use tools.\n"
        "  seen in 2 scenarios: a, b"
    )


def test_the_same_change_of_two_headers_is_one_problem() -> None:
    pinned = [Told("You are a coding agent.", tools) for tools in (TOOLS, TOOLS[:1])]
    told = [Told("You are a careful agent.", tools) for tools in (TOOLS, TOOLS[:1])]

    (problem,) = judge("default", pinned, {"a": told, "b": told[:1], "c": told[1:]}).problems

    assert problem.endswith("  seen in 3 scenarios: a, b, c")


@pytest.mark.parametrize("place", [0, 150, 900, 1999])
def test_a_changed_word_of_a_long_line_is_in_sight(place: int) -> None:
    text = "lorem " * 350
    told = f"{text[:place]}CHANGED{text[place:]}\nand a line more"

    (problem,) = judge("default", [Told(text, TOOLS)], {"a": [Told(told, TOOLS)]}).problems

    assert "CHANGED" in problem
    assert max(len(line) for line in problem.split("\n")) < 220


def test_a_changed_tool_is_told_by_its_name() -> None:
    told = Told(PINNED[0].system, [TOOLS[0] | {"description": "Runs one."}, TOOLS[1]])

    (problem,) = judge("default", PINNED, {"a": [told]}).problems

    assert problem == (
        "the tools differ from the pinned ones:\n"
        "  at:       bash.description\n"
        '  expected: "Run a command."\n'
        '  actual:   "Runs one."\n'
        "  seen in 1 scenario: a"
    )


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (TOOLS[::-1], "only their order differs"),
        (TOOLS[:1], "actual:   nothing"),
        ([*TOOLS, {"name": "new"}], "at:       new"),
        ([TOOLS[0], TOOLS[0]], "at:       "),
        ("text", "at:       "),
        ([1], "at:       "),
        ([{"name": f"t{n}"} for n in range(20)], "… and more"),
    ],
)
def test_any_change_of_the_tools_is_told(tools: object, words: str) -> None:
    (problem,) = judge("default", PINNED[:1], {"a": [Told(PINNED[0].system, tools)]}).problems

    assert words in problem
    assert "the prompt differs" not in problem


def test_a_long_difference_is_cut() -> None:
    told = Told("\n".join(f"new {n} {'x' * 300}" for n in range(100)), TOOLS)

    (problem,) = judge("default", PINNED, {f"s{n:02}": [told] for n in range(20)}).problems

    assert "more lines" in problem
    assert "and 8 more" in problem
    assert max(map(len, problem.split("\n"))) < 500


def test_a_class_without_pin_can_not_pass() -> None:
    verdict = judge("other", [], {"a": [Told("x", [])]})

    assert verdict.problems == (
        "a header, and the class has no pin to compare it with\n  seen in 1 scenario: a",
    )


def test_a_prompt_that_is_missing_differs_from_one_that_is_there() -> None:
    assert "the prompt differs" in judge("c", PINNED, {"a": [Told(None, TOOLS)]}).problems[0]


A: dict[str, object] = {"name": "a", "schema": {"type": "object", "required": [{"x": 1, "y": 2}]}}
B: dict[str, object] = {"name": "b", "description": "B."}


def turned(value: Json) -> Json:
    """Return a value with the keys of its objects in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


def test_tools_that_are_equal_are_spelled_as_before() -> None:
    old = tools_bytes([Told("", [A, B]), Told("", [])])

    assert stable_tools(tools_bytes([Told("", turned([A, B])), Told("", [])]), old) == old


def test_a_changed_tool_changes_its_own_lines_alone() -> None:
    changed = B | {"description": "Another.", "more": True}
    new = tools_bytes([Told("", turned([A, changed]))])

    done = stable_tools(new, tools_bytes([Told("", [B, A])]))

    assert done == tools_bytes([Told("", [A, changed])])


@pytest.mark.parametrize("old", [None, b"{", b"[]", b"[[1], {}]"])
def test_without_tools_as_before_they_are_as_they_came(old: bytes | None) -> None:
    new = tools_bytes([Told("", [A, B]), Told("", [A])])

    assert stable_tools(new, old) == new
