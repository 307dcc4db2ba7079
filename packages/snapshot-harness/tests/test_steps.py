import json
from pathlib import Path

import pytest

from snapshot_harness.conditions import WaitForFile
from snapshot_harness.exceptions import ScenarioError
from snapshot_harness.steps import PromptAndCancel, Script, read_script

SEE = "  hint: the README lists every key and what it takes"
UNKNOWN = "input.json:4: unknown operation 'waitforTurnEnd' in steps.2"


def read(directory: Path, value: object) -> Script:
    path = directory / "input.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read_script(path)


def problems(directory: Path, value: object) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        read(directory, value)
    return [str(problem).removeprefix(f"{directory}/") for problem in caught.value.problems]


def test_every_operation_is_read(tmp_path: Path) -> None:
    steps: list[dict[str, object]] = [
        {"op": "initialize", "terminalOutput": True},
        {"op": "newSession", "additionalDirectories": ["more"]},
        {"op": "newSessionExpectError", "cwd": "nowhere"},
        {"op": "loadSession", "session": 1},
        {"op": "prompt", "text": "Hi", "detach": True},
        {"op": "promptContent", "content": [{"type": "text", "text": "Hi"}]},
        {"op": "promptExpectError", "text": "Hi"},
        {"op": "promptAndCancel", "text": "Hi", "waitForFile": {"path": "a", "timeoutMs": 5}},
        {"op": "cancel", "wait": {"op": "waitForTurnStart"}},
        {"op": "promptAndWaitForAgentMessage", "text": "Hi", "waitForText": "Ho"},
        {"op": "waitForFile", "path": "a"},
        {"op": "waitForTurnStart", "minimumTurn": 2},
        {"op": "waitForTurnEnd"},
        {"op": "waitForSubagentTurnEnd", "child": 2, "minimumTurn": 3},
        {"op": "waitForUpdate", "update": {"sessionUpdate": "plan"}},
        {"op": "waitForEvent", "type": "tool/call", "where": {"name": "x"}, "after": "turn/end"},
        {"op": "restartAgent", "kill": True},
        {"op": "request", "method": "x", "params": {}, "expectError": -32601},
        {"op": "notify", "method": "x"},
        {"op": "sendRaw", "line": "{"},
    ]

    script = read(tmp_path, {"$schema": "s", "steps": steps})

    assert [step.op for step in script.steps] == [step["op"] for step in steps]
    assert script.prompts


def test_a_script_that_asks_the_model_nothing_does_not_prompt(tmp_path: Path) -> None:
    assert not read(tmp_path, {"steps": [{"op": "initialize"}]}).prompts


def test_a_prompt_that_must_be_refused_prompts_too(tmp_path: Path) -> None:
    step = {"op": "promptExpectError", "text": "Hi"}

    assert read(tmp_path, {"steps": [step]}).prompts


def test_a_cancels_file_is_a_wait_for_a_file(tmp_path: Path) -> None:
    step = {"op": "promptAndCancel", "text": "Hi", "waitForFile": {"path": "a", "timeoutMs": 5}}

    first = read(tmp_path, {"steps": [step]}).steps[0]

    assert isinstance(first, PromptAndCancel)
    assert first.condition == WaitForFile(path="a", timeoutMs=5)


def test_all_problems_are_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = (
        '{"steps": [\n'
        '  {"op": "prompt", "txt": "Hi"},\n'
        '  {"op": "waitForFile", "path": "a", "timeoutMs": 0},\n'
        '  {"op": "waitforTurnEnd"},\n'
        '  {"op": "cancel", "wait": {"op": "waitForUpdate", "updat": {}}}\n'
        "]}\n"
    )

    found = problems(tmp_path, text)

    assert found == [
        "input.json:2: key 'text' is missing in steps.0\n  hint: add 'text'",
        "input.json:2: unknown key 'txt' in steps.0\n  hint: did you mean 'text'?",
        f"input.json:3: steps.1.timeoutMs: input should be greater than 0\n{SEE}",
        f"{UNKNOWN}\n  hint: did you mean 'waitForTurnEnd'?",
        "input.json:5: unknown key 'updat' in steps.3.wait\n  hint: did you mean 'update'?",
    ]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({"steps": []}, "list should have at least 1 item"),
        ({"steps": [{"op": "fly"}]}, "unknown operation 'fly' in steps.0\n  hint: known: cancel, "),
        ({"steps": [{}]}, "steps.0: no operation\n  hint: add 'op'"),
        (
            {"steps": [{"op": "waitForGoalPhase"}]},
            "hint: use waitForEvent with the type goal/change",
        ),
        ("{", "input.json:1: Expecting property name"),
        ('{"steps": [], "steps": []}', "key 'steps' stands twice in one object"),
        (
            {"steps": [{"op": "waitForUpdate", "update": {"a": 1}, "frame": {"a": 1}}]},
            "it waits for either an `update` or a `frame`",
        ),
        (
            {
                "steps": [{"op": "initialize"}],
                "permissionAnswers": [{"kind": "hold", "toolCall": []}],
            },
            "permissionAnswers.0.toolCall: input should be a valid string",
        ),
        ([], "the document: input should be a valid dictionary"),
        (
            {"steps": [{"op": "prompt", "text": 1}]},
            "steps.0.text: input should be a valid string",
        ),
        (
            {
                "steps": [
                    {
                        "op": "cancel",
                        "wait": {"op": "waitForTurnEnd"},
                        "waitForFile": {"path": "a"},
                    }
                ]
            },
            "`wait` and `waitForFile` exclude each other",
        ),
        ({"steps": [{"op": "initialize"}], "permission_answers": []}, "unknown key 'permission_an"),
        ("\ufeff{}", "input.json: the file begins with a byte-order mark"),
        ("[" * 100_000, "input.json: nested too deeply"),
        ('{"steps": [NaN]}', "NaN is no JSON"),
        ('{"steps": [-1e999]}', "the number -1e999 is too large"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, value: object, what: str) -> None:
    assert what in problems(tmp_path, value)[0]


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ([{"kind": "allow_once", "after": 1}], "1 is no answer that is ever given"),
        (
            [{"kind": "hold"}, {"kind": "allow_once", "after": 0}],
            "0 is no answer that is ever given",
        ),
        ([{"kind": "allow_once", "after": 0}], "permissionAnswers.0.after: it waits for itself"),
        (
            [{"kind": "allow_once", "after": 1}, {"kind": "allow_once", "after": 0}],
            "it waits for itself",
        ),
    ],
)
def test_answers_that_never_come_are_refused(
    tmp_path: Path, answers: list[object], what: str
) -> None:
    value = {"steps": [{"op": "initialize"}], "permissionAnswers": answers}

    assert what in problems(tmp_path, value)[0]


def test_an_answer_may_wait_for_another(tmp_path: Path) -> None:
    answers = [{"kind": "allow_once", "toolCall": "a", "after": 1}, {"kind": "reject_once"}]

    script = read(tmp_path, {"steps": [{"op": "initialize"}], "permissionAnswers": answers})

    assert script.permission_answers[0].after == 1


def test_a_number_is_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "input.json"
    step = '{"op": "request", "method": "m", "params": {"a": 1, "b": 1.0, "c": 1e3}}'
    path.write_text(f'{{"steps": [{step}]}}')

    (read,) = read_script(path).steps

    assert repr(read.model_dump()["params"]) == "{'a': 1, 'b': 1.0, 'c': 1000.0}"


def test_a_missing_file_and_one_that_is_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "input.json"

    with pytest.raises(ScenarioError, match="the file is missing"):
        read_script(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ScenarioError, match="not UTF-8 at byte 0"):
        read_script(path)
