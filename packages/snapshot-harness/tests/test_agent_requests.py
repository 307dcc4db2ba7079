"""What agents ask of the client, and how it answers, with a real process on the other side."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from kit import (
    START,
    add_scenario,
    make_suite,
    refresh,
    refreshed,
    replay,
    say,
    set_up,
    text_of,
    use,
)

from snapshot_harness.suite import Scenario, Suite

PROMPT: dict[str, Any] = {"op": "prompt", "text": "Hi"}


def client(method: str, **params: object) -> str:
    """A command of the fake agent: ask the client."""
    return f"client {method} {json.dumps(params)}"


def outputs(scenario: Scenario) -> list[str]:
    """What the tools of a scenario gave, in order."""
    frames = [
        json.loads(line)
        for line in (scenario.directory / "stdout.expected.jsonl").read_text().splitlines()
    ]
    updates = [frame.get("params", {}).get("update", {}) for frame in frames]
    done = [one for one in updates if one.get("sessionUpdate") == "tool_call_update"]
    return [str(one["content"][0]["content"]["text"]) for one in done]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "scenarios", "[capabilities]\nfs = true\nterminal = true\n")


def test_files_and_terminals_are_served_inside_the_cwd(suite: Suite) -> None:
    run = ["-c", "echo from the terminal; cat made"]
    commands = (
        client("fs/write_text_file", path="$CWD/made", content="by the client"),
        "cat made",
        client("fs/read_text_file", path="$CWD/made"),
        client("fs/read_text_file", path="/etc/passwd"),
        client("terminal/create", command="/bin/sh", args=run, cwd="$CWD"),
        client("terminal/wait_for_exit", terminalId="terminal-1"),
        client("terminal/output", terminalId="terminal-1"),
        client("fake/unknown"),
    )
    scenario = add_scenario(suite, steps=[*START, PROMPT], turns=[[use(*commands), say("Done")]])

    done = refreshed(suite, scenario)

    said, ended = "from the terminal\\nby the client", '{"exitCode": 0, "signal": null}'
    assert outputs(done) == [
        "{}",
        "by the client",
        '{"content": "by the client"}',
        '{"code": -32602, "message": "path is outside the workspace"}',
        '{"terminalId": "{{id:1}}"}',
        ended,
        f'{{"output": "{said}", "truncated": false, "exitStatus": {ended}}}',
        '{"code": -32601, "message": "Method not found: fake/unknown"}',
    ]
    report = replay(suite, done)
    assert report.outcome == "passed"
    assert report.notes == ["the agent asked for 'fake/unknown', which this client does not offer"]


def test_what_is_not_granted_is_not_served(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios")
    command = client("fs/read_text_file", path="$CWD/a")
    turns = [[use(command), say("Done")]]

    done = refreshed(suite, add_scenario(suite, steps=[*START, PROMPT], turns=turns))

    assert outputs(done) == ['{"code": -32601, "message": "Method not found: fs/read_text_file"}']


@pytest.mark.parametrize("ids", ["", "string-ids"])
def test_permission_requests_are_answered_in_turn(suite: Suite, ids: str) -> None:
    first, second = use("permit allow_once reject_once"), use("permit allow_always")
    turns = [[first, say("Done")], [second, say("Done")]]
    answers = [{"kind": "reject_once"}, {"kind": "allow_always"}]
    steps = [*START, PROMPT, PROMPT]
    scenario = add_scenario(suite, steps=steps, answers=answers, turns=turns, fake=ids)

    done = refreshed(suite, scenario)

    assert outputs(done) == [
        '{"outcome": {"outcome": "selected", "optionId": "o-reject_once"}}',
        '{"outcome": {"outcome": "selected", "optionId": "o-allow_always"}}',
    ]


def test_unnamed_answers_within_one_batch_fail_the_run(suite: Suite) -> None:
    turns = [[use("permit allow_once", "permit allow_once"), say("Done")]]
    answers: list[dict[str, Any]] = [{"kind": "allow_once"}, {"kind": "allow_once"}]
    steps = [*START, PROMPT]

    report = refresh(suite, add_scenario(suite, steps=steps, answers=answers, turns=turns))

    assert "permission answer 0 (allow_once) names no tool call" in text_of(report)
    for number, answer in enumerate(answers, 1):
        answer["toolCall"] = f"1.1.{number}"
    named = add_scenario(suite, steps=steps, answers=answers, turns=turns)
    assert refresh(suite, named).outcome == "passed"


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ([{"kind": "hold"}], "permission answer 0 (hold) waits for a cancel"),
        (
            [{"kind": "allow_once", "after": 1}, {"kind": "allow_once", "toolCall": "1.9.1"}],
            "permission answer 0 (allow_once) waits for answer 1 to be given",
        ),
    ],
)
def test_an_answer_that_is_held_back_is_told_when_the_time_is_over(
    tmp_path: Path, answers: list[dict[str, Any]], what: str
) -> None:
    suite = make_suite(tmp_path / "scenarios", "[deadlines]\nstep_s = 1.5\n")
    turns = [[use("permit allow_once"), say("Done")]]
    steps = [*START, PROMPT]

    report = refresh(suite, add_scenario(suite, steps=steps, answers=answers, turns=turns))

    (problem,) = report.problems
    assert what in problem
    assert problem.endswith(
        "hint: see what the agent did instead, or raise `deadlines.step_s` in suite.toml"
    )


def test_a_held_request_is_cancelled_with_the_turn(suite: Suite) -> None:
    wait = {"op": "waitForUpdate", "frame": {"method": "session/request_permission"}}
    step = {"op": "promptAndCancel", "text": "Hi", "wait": wait}
    turns = [[use("permit allow_once"), say("Done")]]
    scenario = add_scenario(suite, steps=[*START, step], answers=[{"kind": "hold"}], turns=turns)

    done = refreshed(suite, scenario)

    assert outputs(done) == ['{"outcome": {"outcome": "cancelled"}}']


def hanging(*parts: str) -> dict[str, Any]:
    entry = {"kind": "hang", "chunks": say(*parts)[:-2]}
    return {"patches": [{"at": 0, "entry": entry}]}


def test_a_hang_is_cancelled_at_a_place_that_is_a_fact(suite: Suite) -> None:
    step = {"op": "promptAndCancel", "text": "Hi"}
    scenario = add_scenario(
        suite, steps=[*START, step], turns=[[say("x")]], toml="overridden = true"
    )
    override = scenario.directory / "replay.override.json"
    override.write_text(json.dumps(hanging("So far", " so good")))

    done = refreshed(suite, scenario)

    transcript = (done.directory / "stdout.expected.jsonl").read_text()
    assert " so good" in transcript
    assert '"stopReason":"cancelled"' in transcript
    assert replay(suite, done).outcome == "passed"


@pytest.mark.parametrize("kill", [False, True])
def test_the_agent_is_restarted_while_a_call_hangs(suite: Suite, *, kill: bool) -> None:
    prompt = {**PROMPT, "detach": True}
    steps = [*START, prompt, {"op": "restartAgent", "kill": kill}, {"op": "initialize"}]
    scenario = add_scenario(suite, steps=steps, turns=[[say("x")]], toml="overridden = true")
    override = scenario.directory / "replay.override.json"
    override.write_text(json.dumps(hanging("So far")))

    done = refreshed(suite, scenario)

    lines = (done.directory / "stdout.expected.jsonl").read_text().splitlines()
    assert lines.count('{"snapshot":"restart"}') == 1
    assert replay(suite, done).outcome == "passed"


def test_waits_look_into_the_agents_log_and_directory(suite: Suite) -> None:
    steps = [
        *START,
        PROMPT,
        {"op": "waitForTurnEnd"},
        {"op": "waitForFile", "path": "made"},
        {"op": "waitForEvent", "type": "tool/call", "where": {"name": "run"}},
    ]
    turns = [[use("touch made"), say("Done")]]

    assert refresh(suite, add_scenario(suite, steps=steps, turns=turns)).outcome == "passed"


def test_a_workspace_is_copied_with_modes_of_its_own(suite: Suite) -> None:
    command = "stat -c '%a %n' * sub/*; cat link; umask"
    scenario = add_scenario(suite, steps=[*START, PROMPT], turns=[[use(command), say("Done")]])
    workspace = scenario.directory / "workspace"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "sub").chmod(0o700)
    for name, mode in (("plain", 0o600), ("sub/runs", 0o711)):
        (workspace / name).write_text(name)
        (workspace / name).chmod(mode)
    (workspace / "link").symlink_to("plain")
    (workspace / "dirlink").symlink_to("sub")

    done = refreshed(suite, scenario)

    assert outputs(done) == ["777 dirlink\n777 link\n644 plain\n755 sub\n755 sub/runs\nplain0022\n"]


def test_a_workspace_may_be_made_elsewhere(suite: Suite, tmp_path: Path) -> None:
    parent = Path("/tmp")
    turns = [[use("pwd"), say("Done")]]
    toml = f'workspace_parent = "{parent}"'
    scenario = add_scenario(suite, steps=[*START, PROMPT], turns=turns, toml=toml)

    done = refreshed(suite, scenario)

    assert outputs(done) == ["{{cwd}}\n"]
    set_up(done.directory, toml='workspace_parent = "nowhere"')
    assert replay(suite, done).outcome == "error"
    assert tmp_path.is_dir()


def test_the_directory_above_a_workspace_made_elsewhere_is_another_one_for_each_user(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [[use("cd .. && echo $(pwd -P) $(pwd -P)/notes"), say("Done")]]
    toml = 'workspace_parent = "~"'
    scenario = add_scenario(suite, steps=[*START, PROMPT], turns=turns, toml=toml)
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        monkeypatch.setenv("HOME", home)
        done = refreshed(suite, scenario)
    assert outputs(done) == ["{{parent}} {{parent}}/notes\n"]

    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        monkeypatch.setenv("HOME", home)
        report = replay(suite, done)
    assert report.outcome == "passed", text_of(report)


def test_the_agent_gets_the_environment_of_the_contract_and_nothing_else(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SOME_KEY", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "x")
    command = "env | grep -v -e ^COVERAGE_ -e ^_= -e ^SHLVL= -e ^PWD= -e ^PATH= -e ^OLDPWD= | sort"
    turns = [[use(command), say("Done")]]

    done = refreshed(suite, add_scenario(suite, steps=[*START, PROMPT], turns=turns))

    (text,) = outputs(done)
    assert [line.partition("=")[0] for line in text.splitlines()] == [
        "DSH_SNAPSHOT",
        "DSH_SNAPSHOT_FILE",
        "DSH_SNAPSHOT_RUN",
        "DSH_SNAPSHOT_SESSIONS_ROOT",
        "DSH_SNAPSHOT_SPILL_ROOT",
        "DSH_SNAPSHOT_VERDICT_DIR",
        "HOME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "TZ",
    ]
    assert "HOME={{home}}" in text
    assert "TMPDIR={{tmp}}" in text
