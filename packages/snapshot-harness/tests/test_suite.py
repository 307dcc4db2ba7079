import sys
from pathlib import Path

import pytest

from snapshot_harness.exceptions import ScenarioError
from snapshot_harness.suite import Scenario, read_scenario, read_suite, rules_of

SEE = "\n  hint: the README lists every key and what it takes"


def suite_problems(directory: Path, text: str) -> list[str]:
    path = directory / "suite.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_suite(path)
    return [str(problem).removeprefix(f"{directory}/") for problem in caught.value.problems]


def scenario_problems(directory: Path, text: str, name: str = "one") -> list[str]:
    path = directory / name / "scenario.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    return [str(problem).removeprefix(f"{directory}/") for problem in caught.value.problems]


def test_a_suite_fills_in_its_command_and_environment(tmp_path: Path) -> None:
    for name in ("agent.toml", "other.toml"):
        (tmp_path / name).touch()
    path = tmp_path / "suite.toml"
    path.write_text(
        'command = ["{python}", "{suite}/agent", "--config={config}", "{other}"]\n'
        'config = "agent.toml"\n'
        '[env]\nA = "{suite}"\nB = "b"\n'
    )
    scenario = tmp_path / "one"
    scenario.mkdir()
    (scenario / "scenario.toml").write_text(
        'why = "w"\norigin = "authored"\nconfig = "other.toml"\n[env]\nB = "c"\n'
    )

    suite = read_suite(path)
    (one,) = suite.scenarios

    command = [sys.executable, f"{tmp_path}/agent", f"--config={tmp_path}/other.toml", "{other}"]
    assert suite.command_for(one.file) == command
    assert suite.env_for(one.file) == {"A": str(tmp_path), "B": "c"}
    assert suite.header_class_of(one.file) == "default"


def test_a_suite_without_a_composition_leaves_its_command_alone(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text('command = ["agent"]\n[capabilities]\nterminal = true\n')
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "scenario.toml").write_text(
        'why = "w"\norigin = "authored"\nheader_class = "other"\n'
    )

    suite = read_suite(path)

    assert suite.command_for(suite.scenarios[0].file) == ["agent"]
    assert suite.header_class_of(suite.scenarios[0].file) == "other"
    assert suite.capabilities == {"terminal"}


def test_all_problems_of_a_suite_are_told_with_the_nearest_known_key(tmp_path: Path) -> None:
    text = 'comand = ["x"]\nidentity = "none"\n[deadlines]\nstep = 3\n[env]\nA = 1\n'

    assert suite_problems(tmp_path, text) == [
        "suite.toml: key 'command' is missing\n  hint: add 'command'",
        "suite.toml:1: unknown key 'comand'\n  hint: did you mean 'command'?",
        "suite.toml:2: identity: input should be 'numbered' or 'merged'" + SEE,
        "suite.toml:4: unknown key 'step' in deadlines\n  hint: did you mean 'step_s'?",
        "suite.toml:6: env.A: input should be a valid string" + SEE,
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('command = ["x", "{config}"]\n', "`command` names {config}, and there is no `config`"),
        (
            'command = ["x", "{config}"]\nconfig = "a.toml"\n',
            "`config` names 'a.toml', which is not there",
        ),
        ("command = [\n", "suite.toml: Invalid value (at end of document)"),
        ('command = ["x"]\n[[rule]]\ntoken = "{{t}}"\n', "has either `path` or `pattern`"),
        (
            'command = ["x"]\n[[rule]]\ntoken = "t"\npattern = "("\n',
            "`pattern` is no regular expression",
        ),
        (
            'command = ["x"]\n[[rule]]\ntoken = "a1"\npattern = "[0-9]"\n',
            "`pattern` matches a part of `token`",
        ),
        ('command = ["x"]\n[[rule]]\ntoken = "t"\npath = "a..b["\n', "`path` is none; one is"),
        ("\ufeffcommand = []\n", "suite.toml: the file begins with a byte-order mark"),
        (f"command = {'[' * 5000}\n", "suite.toml: nested too deeply"),
        (f"max_fixture_bytes = {'1' * 5000}\n", "Exceeds the limit"),
        ('command = ["x"]\n[deadlines]\nstep_s = true\n', "step_s: input should be a valid number"),
        ('command = ["x"]\n[deadlines]\nstep_s = "3"\n', "step_s: input should be a valid number"),
        ('command = ["x"]\n[deadlines]\nstep_s = inf\n', "step_s: input should be a finite number"),
    ],
)
def test_what_a_suite_may_not_say_is_refused(tmp_path: Path, text: str, what: str) -> None:
    assert what in suite_problems(tmp_path, text)[0]


def test_a_suites_rules_are_the_normalizers(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(
        'command = ["x"]\nidentity = "merged"\ncoalesce_chunks = true\n'
        '[[rule]]\npattern = "a+"\ntoken = "{{a}}"\n[[rule]]\npath = "b"\ntoken = "{{b}}"\n'
    )

    rules = rules_of(read_suite(path))

    assert (rules.identity, rules.coalesce_chunks) == ("merged", True)
    assert [(rule.pattern, rule.path) for rule in rules.rules] == [("a+", None), (None, "b")]


def test_a_scenario_must_say_why_and_where_it_comes_from(tmp_path: Path) -> None:
    assert scenario_problems(tmp_path, 'pins_headers = true\nwhy = ""\n') == [
        "one/scenario.toml: key 'origin' is missing\n  hint: add 'origin'",
        "one/scenario.toml:1: unknown key 'pins_headers'\n  hint: did you mean 'pins_header'?",
        "one/scenario.toml:2: why: string should have at least 1 character" + SEE,
    ]


def test_a_scenarios_name_is_lower_case(tmp_path: Path) -> None:
    text = 'why = "w"\norigin = "authored"\n'

    assert "'One_' is no name for a scenario" in scenario_problems(tmp_path, text, name="One_")[0]


@pytest.mark.parametrize(
    ("platforms", "runs"), [("[]", True), ('["nowhere"]', False), (f'["{sys.platform}"]', True)]
)
def test_a_scenario_runs_on_its_platforms(tmp_path: Path, platforms: str, *, runs: bool) -> None:
    text = f'why = "w"\norigin = "authored"\nplatforms = {platforms}\n'
    (tmp_path / "scenario.toml").write_text(text)
    scenario = Scenario(tmp_path / "one")
    (tmp_path / "one").mkdir()
    (tmp_path / "scenario.toml").rename(tmp_path / "one" / "scenario.toml")

    assert scenario.runs_here is runs


def test_a_scenario_that_cannot_be_read_runs_to_be_told(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("why = 1\n")

    assert Scenario(tmp_path).runs_here
    assert not Scenario(tmp_path).is_readable
