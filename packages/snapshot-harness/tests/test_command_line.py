"""The command as a whole: its help, and its end by Ctrl-C."""

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_what_the_system_refuses_is_told_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")

    told = []
    for command in (["new", "one", "--suite", str(file)], ["schemas", str(file / "folder")]):
        assert main(command) == 2
        told.append(capsys.readouterr().err)

    hint = "\n  hint: see to the path, the disk or the permissions, and try again\n"
    assert told == [
        f"snapshot-harness: {file}/suite.toml: Not a directory{hint}",
        f"snapshot-harness: {file}/folder: Not a directory{hint}",
    ]


def test_what_is_told_has_its_reason_where_there_is_no_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_options: object) -> int:
        raise OSError("odd")

    monkeypatch.setattr(review, "run_review", fails)

    assert main(["review"]) == 2
    assert capsys.readouterr().err.startswith("snapshot-harness: odd\n  hint: ")


def test_a_reader_that_has_seen_enough_ends_a_command_quietly(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)

    done = subprocess.run(  # noqa: S603  this interpreter
        [sys.executable, "-m", "snapshot_harness", "schemas", str(tmp_path), "--check"],
        stdout=writes,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writes)

    assert (done.returncode, done.stderr) == (141, b"")
