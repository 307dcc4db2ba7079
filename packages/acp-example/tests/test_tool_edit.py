import os
from pathlib import Path

import pytest
from workspace import Workspace

from acp_example.tools import Diff
from acp_example.tools.edit import Edit, apply_edits
from acp_example.tools.read import Read

TEXT = "one two three\none more\n"


@pytest.fixture
def path(ws: Workspace) -> Path:
    """A file that was read."""
    path = ws.file("a.txt", TEXT)
    ws.read_files.add(path)
    return path


def edit(old: str, new: str) -> dict[str, str]:
    return {"old_text": old, "new_text": new}


def test_edit_requires_read(ws: Workspace) -> None:
    path = ws.file("a.txt", TEXT)

    assert ws.error(Edit(), path="a.txt", edits=[edit("two", "2")]) == (
        "Error [EDIT_REQUIRES_READ]: read 'a.txt' first, then edit it"
    )
    assert path.read_text() == TEXT


def test_edit_after_read_changes_the_file(ws: Workspace) -> None:
    path = ws.file("a.txt", TEXT)
    ws.run(Read(), path="./a.txt", limit=1)

    result = ws.run(Edit(), path="a.txt", edits=[edit("two", "2")])

    assert path.read_text() == "one 2 three\none more\n"
    assert result.text == "Edited a.txt (1 replacement)"
    assert result.diffs == [Diff(path=str(path), old=TEXT, new="one 2 three\none more\n")]
    assert result.details == {"path": "a.txt", "replacements": 1}


def test_edits_are_made_together_in_any_order(ws: Workspace, path: Path) -> None:
    edits = [edit("more", "two"), edit("one two ", ""), edit("three", "3")]

    result = ws.run(Edit(), path="a.txt", edits=edits)

    assert path.read_text() == "3\none two\n"
    assert result.text == "Edited a.txt (3 replacements)"


def test_edit_is_atomic(ws: Workspace, path: Path) -> None:
    edits = [edit("two", "2"), edit("four", "4")]

    assert ws.error(Edit(), path="a.txt", edits=edits) == (
        "Error [EDIT_TARGET_NOT_FOUND]: edit 2: its old_text is not in 'a.txt'"
    )
    assert path.read_text() == TEXT


def test_edit_target_must_be_unique(ws: Workspace, path: Path) -> None:
    assert ws.error(Edit(), path="a.txt", edits=[edit("one", "1")]) == (
        "Error [EDIT_TARGET_NOT_UNIQUE]: edit 1: its old_text is in 'a.txt' more than once; "
        "give more of what stands around it"
    )
    assert path.read_text() == TEXT


def test_an_occurrence_that_overlaps_itself_is_not_unique(ws: Workspace) -> None:
    ws.read_files.add(ws.file("b", "aXaXa"))

    assert "EDIT_TARGET_NOT_UNIQUE" in ws.error(Edit(), path="b", edits=[edit("aXa", "b")])


def test_edits_must_not_overlap(ws: Workspace, path: Path) -> None:
    edits = [edit("two three", "x"), edit("more", "less"), edit("one two", "y")]

    assert ws.error(Edit(), path="a.txt", edits=edits) == (
        "Error [EDIT_OVERLAP]: edits 1 and 3 of 'a.txt' overlap: make one edit of them"
    )
    assert path.read_text() == TEXT


def test_neighbouring_edits_do_not_overlap() -> None:
    assert apply_edits("abcd", [edit("cd", "2"), edit("ab", "1")], "x") == "12"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([edit("", "x")], "edit 1 of 'a.txt': its old_text is empty"),
        ([edit("two", "2"), edit("more", "more")], "edit 2 of 'a.txt': it changes nothing"),
    ],
)
def test_an_edit_must_say_something(
    ws: Workspace, path: Path, edits: list[dict[str, str]], message: str
) -> None:
    assert ws.error(Edit(), path="a.txt", edits=edits) == f"Error [VALIDATION_ERROR]: {message}"
    assert path.read_text() == TEXT


def test_edit_keeps_line_ends_and_hints_at_them(ws: Workspace) -> None:
    path = ws.file("dos.txt", "a\r\nb\r\n")
    ws.read_files.add(path)

    assert ws.error(Edit(), path="dos.txt", edits=[edit("a\nb", "x")]) == (
        "Error [EDIT_TARGET_NOT_FOUND]: edit 1: its old_text is not in 'dos.txt'; "
        "the lines of this file end in CRLF"
    )
    ws.run(Edit(), path="dos.txt", edits=[edit("a", "x")])
    assert path.read_bytes() == b"x\r\nb\r\n"


def test_edit_refuses_what_is_not_text(ws: Workspace) -> None:
    ws.read_files.add(ws.file("latin", b"caf\xe9"))

    assert ws.error(Edit(), path="latin", edits=[edit("caf", "x")]) == (
        "Error [NOT_TEXT]: 'latin' is not UTF-8 text"
    )


def test_edit_refuses_what_is_too_large(ws: Workspace) -> None:
    path = ws.file("big", b"")
    os.truncate(path, 16 * 1024 * 1024 + 1)
    ws.read_files.add(path)

    assert ws.error(Edit(), path="big", edits=[edit("a", "b")]) == (
        "Error [NOT_TEXT]: 'big' has 16777217 bytes, more than the 16777216 allowed"
    )


def test_edit_says_that_a_file_has_gone(ws: Workspace, path: Path) -> None:
    path.unlink()

    assert ws.error(Edit(), path="a.txt", edits=[edit("a", "b")]) == (
        "Error [PATH_NOT_FOUND]: there is no 'a.txt'"
    )
