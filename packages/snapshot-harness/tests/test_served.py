"""Refresh's proof that the model's words were logged as they were served."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judging import RULES, answer, event, log

from snapshot_harness.fixtures import Fixture
from snapshot_harness.normalize import normalize_fixture
from snapshot_harness.served import unlogged

Events = Sequence[Mapping[str, Any]]


def judge(
    served: Events, logged: Events, *, overridden: Mapping[int, Sequence[int]] | None = None
) -> list[str]:
    """Compare two logs as refresh does; `served` is the fixture."""
    left, right = ([log(events, lineage="1", tokens=1)] for events in (served, logged))
    fixture = Fixture(directory=Path(), logs=left, transcript=[], overridden=dict(overridden or {}))
    expected = normalize_fixture(left, [], rules=RULES)
    return unlogged(fixture, expected, right, normalize_fixture(right, [], rules=RULES))


PREFIX = "the agent did not log what it was served: "


def test_equal_chunks_at_other_places_are_equal() -> None:
    assert judge(answer("a"), [event("turn/start", {"turn": 1}), *answer("a", turn=2)]) == []


def test_the_first_difference_of_a_call_is_shown() -> None:
    assert judge(answer("a", "b"), answer("a", "c")) == [
        f'{PREFIX}model call 1 of session 1, chunk [2].text\n  served: "b"\n  logged: "c"'
    ]


def test_a_call_that_is_missing_or_more_is_told() -> None:
    both = [*answer("a"), *answer("b")]

    assert judge(both, answer("a")) == [
        f"{PREFIX}model call 2 of session 1 is not in the agent's log"
    ]
    assert judge(answer("a"), both) == [
        f"{PREFIX}model call 2 of session 1 is in the agent's log, and was not served"
    ]


def test_a_call_that_an_override_serves_is_the_runs() -> None:
    assert judge(answer("a"), answer("b"), overridden={0: [1]}) == []


def test_sessions_without_lineage_are_told_by_their_place() -> None:
    left, right = ([log(answer(text), tokens=1)] for text in ("a", "b"))
    fixture = Fixture(directory=Path(), logs=left, transcript=[])
    expected = normalize_fixture(left, [], rules=RULES)

    (problem,) = unlogged(fixture, expected, right, normalize_fixture(right, [], rules=RULES))

    assert problem.startswith(f"{PREFIX}model call 1 of session number 1, chunk [1].text")


def test_an_agent_without_lineage_may_be_served_a_log_that_has_one() -> None:
    left, right = [log(answer("a"), lineage="1", tokens=1)], [log(answer("a"), tokens=1)]
    fixture = Fixture(directory=Path(), logs=left, transcript=[])
    expected = normalize_fixture(left, [], rules=RULES)

    assert unlogged(fixture, expected, right, normalize_fixture(right, [], rules=RULES)) == []


def summary(**data: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    call = {"turn": 1, "step": 1, "call": 1, "purpose": "compaction"}
    return [
        event("llm/call", call),
        event("compaction/summary", {"summary": "s", "llmStreamCall": True, **data}),
    ]


def test_what_a_summary_was_made_of_is_input() -> None:
    raw = [{"type": "text", "text": "a"}]
    usage = {"inputTokens": 1, "outputTokens": 2}

    same = judge(summary(rawOutput=raw, usage=usage), summary(rawOutput=raw, usage=usage))
    other = judge(summary(rawOutput=raw, usage=usage), summary(rawOutput=raw, usage={}))

    assert same == []
    assert "usage" in other[0]
