import json
from dataclasses import replace
from pathlib import Path

from judging import event, log, run

from snapshot_harness.compare import compare
from snapshot_harness.exceptions import Problem
from snapshot_harness.report import (
    Report,
    annotation,
    as_json,
    failure_text,
    problem_annotation,
    verdict_line,
)

CAUSES = compare(
    run([log([event("x", {"turn": 1, "v": 1})])]), run([log([event("x", {"turn": 1, "v": 2})])])
)
PASSED = Report(
    scenario="one", directory=Path("s/one"), mode="replay", outcome="passed", seconds=0.124
)
FAILED = replace(
    PASSED,
    outcome="failed",
    causes=CAUSES,
    kept=Path("s/.snapshot/one"),
    accept="snapshot-harness review s --accept one",
    stderr_tail="warning: a\nwarning: b\n",
    notes=("agent requests without an answer: fake/x",),
)


def test_a_failure_says_the_cause_first_and_then_what_to_do() -> None:
    assert failure_text(FAILED) == (
        "one: behaviour differs in 1 place\n"
        "s/one/session.jsonl:2: session 1, turn 1: x differs\n"
        "  at:       data.v\n"
        "  expected: 1\n"
        "  actual:   2\n"
        "  @@ session.jsonl:2\n"
        '  - {"data":{"turn":1,"v":1},"type":"x"}\n'
        '  + {"data":{"turn":1,"v":2},"type":"x"}\n'
        "agent requests without an answer: fake/x\n"
        "  the actual files are in s/.snapshot/one\n"
        "  hint: if this change is meant: snapshot-harness review s --accept one\n"
        "  the last the agent wrote to stderr:\n"
        "    warning: a\n"
        "    warning: b"
    )


def test_a_problem_of_the_run_comes_before_the_differences() -> None:
    text = failure_text(replace(FAILED, problems=("a model call was left",)))

    assert text.startswith("one: the run itself failed\na model call was left\ns/one/session.jsonl")


def test_a_run_that_could_not_be_judged_says_only_why() -> None:
    report = replace(PASSED, outcome="error", problems=("scenario.toml:1: unknown key",))

    assert failure_text(report) == "one: the run itself failed\nscenario.toml:1: unknown key"


def test_a_scenario_is_one_line_of_the_summary() -> None:
    assert verdict_line(PASSED) == "PASSED one (0.12 s): as expected"
    assert verdict_line(replace(PASSED, written=("a", "b"))) == (
        "PASSED one (0.12 s): 2 files written"
    )
    assert verdict_line(replace(PASSED, written=("a",))).endswith("): 1 file written")
    twice = replace(FAILED, causes=[CAUSES[0], replace(CAUSES[0], folded=3)])
    assert verdict_line(twice) == "FAILED one (0.12 s): behaviour differs in 5 places"


def test_a_report_is_json() -> None:
    value = json.loads(json.dumps(as_json(replace(FAILED, written=("a",)))))

    assert (value["scenario"], value["outcome"], value["kept"]) == (
        "one",
        "failed",
        "s/.snapshot/one",
    )
    assert value["causes"][0]["path"] == "data.v"
    assert value["written"] == ["a"]
    assert as_json(PASSED)["kept"] is None


def test_a_failure_is_annotated_at_its_first_cause() -> None:
    text = annotation(replace(FAILED, scenario="a:b,c", kept=None, accept="", stderr_tail=""))

    assert text.startswith(
        "::error file=s/one/session.jsonl,line=2,title=snapshot a%3Ab%2Cc::a:b,c: behaviour"
    )
    assert "\n" not in text
    assert "%0A" in text


def test_a_failure_without_cause_is_annotated_at_its_scenario() -> None:
    text = annotation(replace(PASSED, outcome="error", problems=("100% wrong",)))

    assert text.startswith("::error file=s/one/scenario.toml,line=1,")
    assert text.endswith("100%25 wrong")


def test_a_cause_without_line_is_annotated_at_the_first() -> None:
    report = replace(FAILED, causes=[replace(CAUSES[0], line=None)])

    assert "session.jsonl,line=1," in annotation(report)


def test_a_guards_problem_is_annotated_at_its_file() -> None:
    problem = Problem(path=Path("s/one/input.json"), line=3, what="wrong", hint="right it")

    assert problem_annotation(problem) == (
        "::error file=s/one/input.json,line=3,title=snapshot guards::"
        "s/one/input.json:3: wrong%0A  hint: right it"
    )
    assert ",line=1," in problem_annotation(replace(problem, line=None))
