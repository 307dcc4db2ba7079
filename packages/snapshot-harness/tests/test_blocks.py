"""An edited row is told where it was edited, whatever followed from it."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit import add_scenario, make_suite, refresh, refreshed, replay, say, set_up, text_of

from llm_replay.session_log import read_session_log
from snapshot_harness.blocks import block_causes
from snapshot_harness.causes import Cause
from snapshot_harness.suite import Scenario, Suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "scenarios")


def edit(scenario: Scenario, old: str, new: str) -> None:
    log = scenario.directory / "session.jsonl"
    text = log.read_text()
    assert old in text
    log.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("layout", ["plain", "packed"])
def test_an_edited_delta_is_the_first_cause(suite: Suite, layout: str) -> None:
    scenario = add_scenario(suite, turns=[[say("one ", "two ", "three")]])
    set_up(scenario.directory, toml=f'layout = "{layout}"')
    done = refreshed(suite, scenario)
    edit(done, '"two "', '"tow "')

    report = replay(suite, done)

    cause = report.causes[0]
    line = {"plain": 9, "packed": 8}[layout]
    assert (cause.file, cause.line, cause.path) == ("session.jsonl", line, "data.chunk.text")
    assert (cause.session, cause.turn, cause.step) == ("1", 1, 1)
    assert (cause.expected, cause.actual) == ('"one two three"', '"one tow three"')
    assert cause.message.startswith("the deltas of block 0 don't join to its block-end")


@pytest.mark.parametrize("run", [replay, refresh])
def test_it_is_told_beside_the_failure_that_it_led_to(suite: Suite, run: Any) -> None:  # noqa: ANN401
    done = refreshed(suite, add_scenario(suite, turns=[[say("one ", "two")]]))
    edit(done, '"two"', '"tow"')
    set_up(done.directory, fake="refuse")

    report = run(suite, done)

    assert "session/prompt was answered with an error" in text_of(report)
    assert [cause.line for cause in report.causes] == [9]


def test_a_stream_that_breaks_the_grammar_on_purpose_is_no_cause(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("one ", "two")]])
    edit(scenario, '"two"', '"tow"')
    set_up(scenario.directory, toml="malformed = true")
    done = refreshed(suite, scenario)
    edit(done, '"reason":"initial"', '"reason":"other"')

    (cause,) = replay(suite, done).causes

    assert cause.path == "data.reason"


def causes_of(chunks: list[dict[str, Any]]) -> list[Cause]:
    header = {"type": "session", "version": 1, "id": "s", "createdAt": 0, "lineage": "1"}
    rows = [
        {"type": "assistant/chunk", "seq": k, "time": 0, "data": {"turn": 1, "step": 1, "chunk": c}}
        for k, c in enumerate([*chunks, {"type": "finish", "reason": {"kind": "stop"}}])
    ]
    log = read_session_log("".join(json.dumps(one) + "\n" for one in [header, *rows]).encode())
    return block_causes([log])


def block(deltas: list[str], end: str) -> list[dict[str, Any]]:
    return [
        *({"type": "text-delta", "index": 0, "text": text} for text in deltas),
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": end}},
    ]


@pytest.mark.parametrize(
    ("deltas", "end", "place"),
    [
        (["ab", "cd"], "abcd", None),
        (["ab", "cd"], "Abcd", 0),
        (["ab", "cd"], "abcD", 1),
        (["ab", "cd"], "abcde", 1),
        (["ab", "cd"], "ab", 1),
        (["", "cd"], "x", 1),
        ([], "x", None),
    ],
)
def test_the_row_is_named_where_the_texts_part(
    deltas: list[str], end: str, place: int | None
) -> None:
    lines = [one.line for one in causes_of(block(deltas, end))]

    assert lines == ([] if place is None else [place + 2])


def test_a_block_that_takes_the_place_of_another_is_judged_alone() -> None:
    first, second = block(["a"], "a"), block(["b", "c"], "bc")

    assert causes_of([*first, *second]) == []
    assert [one.line for one in causes_of([*first, *block(["b", "c"], "bd")])] == [5]
