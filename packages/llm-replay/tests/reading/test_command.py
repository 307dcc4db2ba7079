import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from log_kit import FINISH, Told, rows, text, write_log

from llm_replay.__main__ import main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", ["show", "pack"])
def test_a_log_that_is_not_there_is_told(command: str, told: Told) -> None:
    assert told(command, "no.jsonl", status=1) == (
        "no.jsonl: there is no such file\n  hint: record the scenario\n"
    )


def test_the_command_tells_how_it_is_used(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    told = capsys.readouterr().out
    assert told.endswith(USAGE)
    for examples in EXAMPLES.values():
        assert examples.removeprefix("examples:\n") in told
    for line in (
        "tell what is in a log, call by call",
        "tell everything that keeps a log from being replayed",
        "rewrite a log in canonical layout, atomically",
    ):
        assert line in told
    with pytest.raises(SystemExit, match="2"):
        main([])


USAGE = """
A PATH is a session log, or a directory with session.jsonl, session.1.jsonl, …
Exit status: 0 fine, 1 a problem was found, 2 the command line makes no sense.
"""
EXAMPLES = {
    "show": """\
examples:
  llm-replay show scenarios/fix-typo            what the model said, call by call
  llm-replay show session.jsonl --json          the same for a program
""",
    "check": """\
examples:
  llm-replay check scenarios/*/                 can these be replayed? every problem
""",
    "pack": """\
examples:
  llm-replay pack session.jsonl                 rewrite with packed rows
  llm-replay pack --check scenarios/fix-typo    only say whether that would change anything
  llm-replay pack --layout plain session.jsonl  rewrite with a row for each delta
""",
}
HELP = {
    "show": ["Tell what is in a log, call by call.", "--json a JSON list of sessions"],
    "check": ["Tell everything that keeps a log from being replayed."],
    "pack": [
        "Rewrite a log in canonical layout, atomically.",
        "--check write nothing; 1 if it would",
        "one row for a run of deltas (default), or one for each",
    ],
}


@pytest.mark.parametrize("command", HELP)
def test_each_command_tells_how_it_is_used_with_an_example(
    command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])

    told = capsys.readouterr().out
    assert told.endswith(EXAMPLES[command] + USAGE)
    assert [line for line in HELP[command] if line not in " ".join(told.split())] == []


def run_module(
    directory: Path, *argv: str, stdout: int, encoding: str = "utf-8"
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  our own interpreter
        [sys.executable, "-m", "llm_replay", *argv],
        cwd=directory,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_the_module_is_the_command(tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl")
    child = run_module(tmp_path, "check", "a.jsonl", stdout=subprocess.PIPE)

    assert child.communicate() == (b"a.jsonl: fine\n", b"")
    assert child.returncode == 0


@pytest.mark.parametrize("command", ["show", "check"])
def test_what_the_terminal_cannot_write_is_written_as_an_escape(
    command: str, tmp_path: Path
) -> None:
    write_log(tmp_path / "\u2192.jsonl", *rows(text("\u2192"), FINISH))
    child = run_module(tmp_path, command, "\u2192.jsonl", stdout=subprocess.PIPE, encoding="cp1252")
    out, err = child.communicate()

    assert (b"\\u2192" in out, err, child.returncode) == (True, b"", 0)


def test_another_program_may_catch_what_is_told(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["check", str(log)]) == 0

    assert out.getvalue() == f"{log}: fine\n"


def test_a_reader_that_has_seen_enough_is_no_failure_of_ours(tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl")
    reading, writing = os.pipe()
    os.close(reading)
    child = run_module(tmp_path, "show", "a.jsonl", stdout=writing)
    os.close(writing)

    assert child.communicate()[1] == b""
    assert child.returncode == 1
