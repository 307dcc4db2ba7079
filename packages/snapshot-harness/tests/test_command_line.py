"""The command as a whole: its help, and its end by Ctrl-C."""

import re

import pytest

from snapshot_harness import review
from snapshot_harness.__main__ import main

COMMANDS = ["init", "new", "review", "smoke", "schemas"]


def help_of(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    return capsys.readouterr().out


def test_the_help_names_every_command_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    told = help_of(capsys)

    assert re.findall(r"^    (\w+)  +[a-z]", told, re.MULTILINE) == COMMANDS
    assert "  snapshot-harness init -- node agent.mjs       a suite for your agent" in told
    assert "Exit status: 0 fine, 1 something failed, 2 it could not be done at all." in told


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_says_what_it_does_and_shows_an_example(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    told = help_of(capsys, command)

    assert re.search(r"^[A-Z][^\n]+\.$", told, re.MULTILINE)
    assert f"example: snapshot-harness {command} " in told


def test_ctrl_c_ends_a_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(review, "run_review", interrupted)

    assert main(["review"]) == 130
    assert capsys.readouterr().err == "snapshot-harness: interrupted\n"
