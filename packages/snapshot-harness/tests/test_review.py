import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guarded import write_scenario, write_suite
from judging import event, log, run

from snapshot_harness import atomic
from snapshot_harness import kept as kept_module
from snapshot_harness.__main__ import main
from snapshot_harness.compare import compare
from snapshot_harness.fixtures import SESSION, TRANSCRIPT
from snapshot_harness.kept import find_kept, keep

NEW = b'{"new":1}\n'
CAUSES = compare(
    run([log([event("x", {"turn": 1, "v": 1}), event("y", {"v": 1})])]),
    run([log([event("z", {"n": 1}), event("x", {"turn": 1, "v": 2}), event("y", {"v": 3})])]),
)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "scenarios").mkdir()
    made = write_suite(tmp_path / "scenarios")
    write_scenario(made / "two")
    write_scenario(made / "two-more")
    for name in ("one", "two", "two-more"):
        keep(made, name, files={TRANSCRIPT: NEW}, causes=CAUSES, environ={})
    return made


def waiting(suite: Path) -> list[str]:
    return [kept.scenario for kept in find_kept(suite)]


def taken(suite: Path, name: str) -> bool:
    return (suite / name / TRANSCRIPT).read_bytes() == NEW


def test_what_waits_is_listed(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(suite, "two", files={TRANSCRIPT: NEW}, refusals=["no"], environ={})

    assert main(["review", str(suite), "--list"]) == 0

    assert capsys.readouterr().out == (
        "one: 3 places; session.jsonl:1: session 1: unexpected z after this line\n"
        "two: 0 places (can't be accepted); no difference was kept\n"
        "two-more: 3 places; session.jsonl:1: session 1: unexpected z after this line\n"
    )


def test_one_is_accepted_by_name(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(suite / "suite.toml"), "--accept", "two"]) == 0

    assert capsys.readouterr().out == "two: accepted, stdout.expected.jsonl written\n"
    assert taken(suite, "two")
    assert not taken(suite, "two-more")
    assert waiting(suite) == ["one", "two-more"]


def test_several_are_rejected_by_a_glob(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(suite), "--reject", "two*"]) == 0

    assert capsys.readouterr().out == (
        "two: rejected; the committed files stay\ntwo-more: rejected; the committed files stay\n"
    )
    assert not taken(suite, "two")
    assert waiting(suite) == ["one"]


def test_accepting_what_changed_nothing_says_so(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (suite / "one" / SESSION).read_bytes()
    keep(suite, "one", files={SESSION: data}, environ={})

    assert main(["review", str(suite), "--accept", "one"]) == 0
    assert capsys.readouterr().out == "one: accepted, nothing written\n"


def test_what_must_not_be_taken_over_is_refused(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(suite, "two", files={TRANSCRIPT: NEW}, refusals=["a call was left"], environ={})

    assert main(["review", str(suite), "--accept", "two*"]) == 1

    assert "two: not accepted" in capsys.readouterr().err
    assert not taken(suite, "two")
    assert taken(suite, "two-more")


def test_an_unknown_name_is_an_error(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(suite), "--accept", "tow"]) == 1
    assert "nothing called 'tow' waits for review" in capsys.readouterr().err


def test_a_directory_without_suite_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", str(tmp_path), "--list"]) == 2
    assert "no suite.toml" in capsys.readouterr().err


def test_the_suite_is_found_below_the_current_directory(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(suite.parent)

    assert main(["review", "--list"]) == 0
    assert capsys.readouterr().out.startswith("one: ")


def test_a_folder_that_no_run_left_is_an_error(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (suite / ".snapshot" / "one" / "pending.json").write_text("{}")

    assert main(["review", str(suite), "--list"]) == 1
    assert "not what this version" in capsys.readouterr().err


def test_without_a_terminal_nothing_is_asked(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(["review", str(suite)]) == 2

    assert "use --list, --accept or --reject" in capsys.readouterr().err


def test_nothing_to_review_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(tmp_path)

    assert main(["review", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing waits for review\n"


class Terminal:
    """The command on a pseudo-terminal."""

    def __init__(self, suite: Path) -> None:
        self._here, there = pty.openpty()
        self.process = subprocess.Popen(  # noqa: S603  this interpreter
            [sys.executable, "-m", "snapshot_harness", "review", str(suite)],
            stdin=there,
            stdout=there,
            stderr=there,
        )
        os.close(there)
        self.text = ""

    def until(self, words: str) -> str:
        """Read until the words are there; return what was read."""
        end = time.monotonic() + 30
        while words not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self._here], [], [], 1)[0]:
                try:
                    self.text += os.read(self._here, 4096).decode()
                except OSError:  # Linux says the end of a terminal so
                    break
        assert words in self.text, self.text
        read, self.text = self.text.split(words, 1)
        return (read + words).replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        os.write(self._here, keys.encode())

    def end(self) -> int:
        status = self.process.wait(30)
        os.close(self._here)
        return status


ASKED = "[q]uit ? "


def test_a_walk_through_a_terminal(suite: Path) -> None:
    keep(suite, "two", files={TRANSCRIPT: NEW}, refusals=["a call was left"], environ={})
    terminal = Terminal(suite)

    first = terminal.until(ASKED)
    assert "── 1 of 3: one\n" in first
    assert first.index("before the first turn\n") < first.index("turn 1\n")
    assert "  session.jsonl:2: session 1, turn 1: x differs\n" in first
    terminal.type("?\n")
    terminal.until(ASKED)
    terminal.type("d\n")
    shown = terminal.until(ASKED)
    assert "+++ stdout.expected.jsonl (run)" in shown
    assert '+{"new":1}' in shown
    terminal.type("A\n")
    terminal.until("one: accepted, stdout.expected.jsonl written")
    assert "can't be accepted: a call was left" in terminal.until(ASKED)
    terminal.type("a\n")
    terminal.until("two: not accepted")
    terminal.until(ASKED)
    terminal.type("r\n")
    terminal.until("two-more: rejected")

    assert terminal.end() == 1
    assert taken(suite, "one")
    assert waiting(suite) == ["two"]


@pytest.mark.parametrize("keys", ["s\nq\n", "s\n\x04"])
def test_skipping_and_leaving_change_nothing(suite: Path, keys: str) -> None:
    terminal = Terminal(suite)

    for key in keys.splitlines(keepends=True):
        terminal.until(ASKED)
        terminal.type(key)

    assert terminal.end() == 0
    assert waiting(suite) == ["one", "two", "two-more"]


def test_a_long_diff_is_cut(suite: Path) -> None:
    many = b"".join(b'{"line":"%s"}\n' % (str(n).encode() * 200) for n in range(100))
    keep(suite, "one", files={TRANSCRIPT: many}, stale=["gone.jsonl"], environ={})
    terminal = Terminal(suite)

    terminal.until(ASKED)
    terminal.type("d\n")
    shown = terminal.until(ASKED)

    assert "more lines" in shown
    assert max(map(len, shown.split("\n"))) < 500
    terminal.type("q\n")
    assert terminal.end() == 0


def test_a_long_line_is_cut_around_what_differs(suite: Path) -> None:
    sides = [f"{'x' * 900} {word} {'y' * 900}\n".encode() for word in ("before", "after")]
    (suite / "one" / TRANSCRIPT).write_bytes(sides[0])
    keep(suite, "one", files={TRANSCRIPT: sides[1]}, environ={})
    terminal = Terminal(suite)

    terminal.until(ASKED)
    terminal.type("d\n")
    lines = terminal.until(ASKED).split("\n")

    (gone,) = [line for line in lines if line.startswith("-… x")]
    (come,) = [line for line in lines if line.startswith("+… x")]
    assert " before y" in gone
    assert " after y" in come
    assert max(map(len, lines)) < 250
    terminal.type("q\n")
    assert terminal.end() == 0


def test_what_another_run_replaced_meanwhile_is_not_accepted_unseen(suite: Path) -> None:
    terminal = Terminal(suite)
    terminal.until(ASKED)
    keep(suite, "one", files={TRANSCRIPT: b"other"}, environ={})

    terminal.type("a\n")

    assert "another by now, or gone" in terminal.until(ASKED)
    terminal.type("q\n")
    assert terminal.end() == 1
    assert waiting(suite) == ["one", "two", "two-more"]


def test_a_scenario_that_can_not_be_written_does_not_end_the_walk(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(directory: Path, files: dict[str, bytes | None]) -> list[str]:
        if directory.name == "one":
            raise OSError(28, "No space left on device")
        return atomic.write_scenario(directory, files)

    monkeypatch.setattr(kept_module, "write_scenario", write)

    assert main(["review", str(suite), "--accept", "*"]) == 1

    told = capsys.readouterr()
    assert "one: not accepted\n[Errno 28] No space left on device" in told.err
    assert "two: accepted" in told.out
    assert waiting(suite) == ["one"]
