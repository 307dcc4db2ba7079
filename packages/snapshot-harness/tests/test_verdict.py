from typing import Any

import pytest

from llm_replay.script import SessionScript
from llm_replay.verdict import VerdictFile
from snapshot_harness.verdict import fold, hangs_now, judge

INSTALLED: dict[str, Any] = {"fact": "installed", "version": 1, "scripts": []}


def script(index: int, *kinds: str) -> SessionScript:
    name = f"/s/session.{index}.jsonl" if index else "/s/session.jsonl"
    entries: list[dict[str, Any]] = [{"kind": kind, "chunks": []} for kind in kinds]
    return SessionScript(
        recorded_id="", created_at=0, entries=entries, primary=index == 0, index=index, file=name
    )


def call(number: int, script: int = 0, end: str = "served") -> list[dict[str, Any]]:
    at = {"script": script, "call": number}
    return [{"fact": "call", **at}, *([{"fact": end, **at}] if end else [])]


def files(*facts: list[dict[str, Any]]) -> list[VerdictFile]:
    return [VerdictFile(f"{k}.jsonl", [INSTALLED, *some]) for k, some in enumerate(facts)]


def what(problems: list[str]) -> list[str]:
    """What is wrong; each problem says what to do besides."""
    assert all(problem.count("\n  hint: ") == 1 for problem in problems)
    return [problem.partition("\n")[0] for problem in problems]


BOUND = {"fact": "bound", "script": 0, "session": "s"}
ONE = [script(0, "chunks")]


def test_everything_served_is_in_order() -> None:
    told = fold(files([BOUND, *call(1), *call(2, end="hanging")], call(1, script=1)))

    assert judge(told, [script(0, "chunks", "hang"), script(1, "chunks")], required=True) == []


def test_a_session_that_took_a_script_and_asked_for_nothing_left_its_calls_over() -> None:
    told = fold(files([BOUND]))

    assert what(judge(told, ONE, required=True)) == [
        "session.jsonl: 1 model call of 1 never asked for, the first of them number 1"
    ]


def test_a_call_may_hang_before_a_restart_and_the_next_be_served_after_it() -> None:
    told = fold(files([BOUND, *call(1, end="hanging")], [BOUND, *call(2)]))

    assert judge(told, [script(0, "hang", "chunks")], required=True) == []


@pytest.mark.parametrize(
    ("scripts", "required", "problems"),
    [
        (ONE, True, ["replay was never installed, and the fixture has 1 model call"]),
        (ONE, False, []),
        ([script(0)], True, []),
    ],
)
def test_no_file_means_that_replay_was_never_installed(
    scripts: list[SessionScript], problems: list[str], *, required: bool
) -> None:
    assert what(judge(fold([]), scripts, required=required)) == problems


@pytest.mark.parametrize(
    ("facts", "scripts", "problem"),
    [
        (
            [
                BOUND,
                *call(1),
                {"fact": "fault", "kind": "exhausted", "script": 0, "message": "no more"},
            ],
            ONE,
            "replay fault 'exhausted': no more",
        ),
        (
            [BOUND, *call(1)],
            [script(0, "chunks", "chunks", "chunks")],
            "session.jsonl: 2 model calls of 3 never asked for, the first of them number 2",
        ),
        (
            [BOUND, *call(1)],
            [script(0, "chunks"), script(1, "chunks"), script(2)],
            "session.1.jsonl: no session took this script, which has 1 model call",
        ),
        ([BOUND, *call(1), *call(1)], ONE, "session.jsonl: model call 1 was served 2 times"),
        ([BOUND, *call(1, end="")], ONE, "session.jsonl: model call 1 was cut before its end"),
        (
            [BOUND, *call(1), *call(1, script=4, end="")],
            ONE,
            "script 4: model call 1 was cut before its end",
        ),
    ],
)
def test_what_is_wrong_is_told(
    facts: list[dict[str, Any]], scripts: list[SessionScript], problem: str
) -> None:
    assert what(judge(fold(files(facts)), scripts, required=False)) == [problem]


def test_facts_of_another_kind_say_nothing() -> None:
    strange: list[dict[str, Any]] = [
        {"fact": "call", "script": "0", "call": 1},
        {"fact": "call", "script": 0},
        {"fact": "new", "script": 0, "call": 1},
        {"fact": "bound"},
    ]

    assert judge(fold(files([BOUND, *strange, *call(1)])), ONE, required=True) == []


@pytest.mark.parametrize(
    ("facts", "hangs"),
    [
        ([], False),
        (call(1), False),
        (call(2, end=""), True),
        (call(3, end=""), False),
        (call(1, script=7), False),
    ],
)
def test_the_last_call_may_be_one_that_hangs(facts: list[dict[str, Any]], *, hangs: bool) -> None:
    assert hangs_now(fold(files(facts)), [script(0, "chunks", "hang")]) is hangs


def test_a_script_without_a_file_has_a_number() -> None:
    nameless = SessionScript(recorded_id="", created_at=0, entries=[{}], primary=True)

    assert what(judge(fold(files([])), [nameless], required=True)) == [
        "script 0: no session took this script, which has 1 model call"
    ]
