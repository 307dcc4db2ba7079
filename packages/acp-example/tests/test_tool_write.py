import os

import pytest
from workspace import Workspace

from acp_example.tools import Diff
from acp_example.tools.write import Write


def test_write_creates_a_file_and_its_directories(ws: Workspace) -> None:
    result = ws.run(Write(), path="a/b/c.txt", content="é\r\n")

    path = ws.cwd / "a/b/c.txt"
    assert path.read_bytes() == b"\xc3\xa9\r\n"
    assert result.text == "Created a/b/c.txt (4 bytes)"
    assert result.diffs == [Diff(path=str(path), old=None, new="é\r\n")]
    assert result.details == {"path": "a/b/c.txt", "bytes": 4}
    assert ws.read_files == {path}


def test_write_replaces_a_file_and_keeps_its_mode(ws: Workspace) -> None:
    path = ws.file("run.sh", "old")
    path.chmod(0o750)

    result = ws.run(Write(), path="run.sh", content="new")

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o750
    assert result.text == "Replaced run.sh (3 bytes)"
    assert result.diffs == [Diff(path=str(path), old="old", new="new")]


def test_write_makes_files_as_the_umask_says(ws: Workspace) -> None:
    before = os.umask(0o027)
    try:
        ws.run(Write(), path="a", content="")
    finally:
        os.umask(before)

    assert (ws.cwd / "a").stat().st_mode & 0o777 == 0o640


def test_write_goes_through_a_link_to_where_it_leads(ws: Workspace) -> None:
    ws.file("real", "old")
    (ws.cwd / "link").symlink_to("real")

    ws.run(Write(), path="link", content="new")

    assert (ws.cwd / "link").is_symlink()
    assert (ws.cwd / "real").read_text() == "new"


def test_a_diff_shows_nothing_of_a_file_that_was_too_large(ws: Workspace) -> None:
    path = ws.file("big")
    os.truncate(path, 16 * 1024 * 1024 + 1)

    result = ws.run(Write(), path="big", content="small")

    assert result.diffs == [Diff(path=str(path), old="", new="small")]


def test_write_leaves_nothing_else_behind(ws: Workspace) -> None:
    ws.run(Write(), path="a", content="x")

    assert [entry.name for entry in ws.cwd.iterdir()] == ["a"]


def test_a_write_that_fails_leaves_the_old_file(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.file("a", "old")

    def full(*_names: str, **_folders: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    assert ws.error(Write(), path="a", content="new") == (
        "Error [EXECUTION_ERROR]: 'a': No space left on device"
    )
    assert [(entry.name, entry.read_text()) for entry in ws.cwd.iterdir()] == [("a", "old")]


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("folder", "", "NOT_A_FILE]: 'folder' is a directory"),
        ("file/x", "", "NOT_A_DIRECTORY]: a parent of 'file/x' is a file, not a directory"),
        ("file/x/y", "", "NOT_A_DIRECTORY]: a parent of 'file/x/y' is a file, not a directory"),
        (
            "new",
            "\ud83d",
            "VALIDATION_ERROR]: the text holds half a surrogate pair, which no file can",
        ),
    ],
)
def test_write_says_why_it_cannot(ws: Workspace, path: str, content: str, message: str) -> None:
    ws.file("file")
    ws.file("folder/x")

    assert ws.error(Write(), path=path, content=content) == f"Error [{message}"
    assert ws.read_files == set()


def test_write_does_not_leave_the_workspace(ws: Workspace) -> None:
    (ws.cwd / "out").symlink_to("..")

    assert ws.error(Write(), path="out/x", content="") == (
        "Error [PATH_OUTSIDE_ALLOWED_ROOT]: cannot write 'out/x': "
        f"it leads out of the workspace {str(ws.cwd)!r}"
    )
    assert not (ws.cwd.parent / "x").exists()


def test_write_does_not_write_in_a_read_only_session(ws: Workspace) -> None:
    ws.mode = "read-only"

    assert ws.error(Write(), path="x", content="") == (
        "Error [PERMISSION_DENIED]: cannot write 'x': this session is read-only"
    )
    assert not (ws.cwd / "x").exists()
