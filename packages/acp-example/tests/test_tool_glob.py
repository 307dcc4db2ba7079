import os
from pathlib import Path

import pytest
from workspace import Workspace

from acp_example.tools import walk
from acp_example.tools.glob import Glob
from acp_example.tools.listing import listing
from acp_example.tools.walk import Walk


def test_glob_lists_files_by_path(ws: Workspace) -> None:
    for name in ("b.py", "src/z.py", "src/a/x.py", "A.py", "src/a.txt", "src.py/in"):
        ws.file(name)

    result = ws.run(Glob(), pattern="*.py")

    assert result.text == "A.py\nb.py\nsrc/a/x.py\nsrc/z.py"
    assert result.truncated is False
    assert result.details == {"count": 4}


def test_listing_is_deterministic(ws: Workspace) -> None:
    names = ["a", "b/c", "b/d/e", "b.x", "ä", "B"]
    for name in names:
        ws.file(f"one/{name}")
    for name in reversed(names):
        ws.file(f"two/{name}")

    one, two = (ws.run(Glob(), pattern="**", path=folder).text for folder in ("one", "two"))

    assert one.replace("one/", "two/") == two
    assert two.splitlines() == [f"two/{name}" for name in ("B", "a", "b/c", "b/d/e", "b.x", "ä")]


def test_glob_starts_where_it_is_told(ws: Workspace) -> None:
    ws.file("src/a/x.py")
    ws.file("x.py")

    assert ws.run(Glob(), pattern="*.py", path="src").text == "src/a/x.py"
    assert ws.run(Glob(), pattern="src/*.py", path="src").text == "no file matches"


def test_glob_leaves_out_what_nobody_wrote(ws: Workspace) -> None:
    ws.file(".git/config")
    ws.file("node_modules/x/index.js")
    ws.file(".github/ci.yml")

    assert ws.run(Glob(), pattern="**").text == ".github/ci.yml"
    assert ws.run(Glob(), pattern="**", path=".git").text == ".git/config"


def test_glob_never_goes_through_a_link(ws: Workspace) -> None:
    ws.file("real/a")
    (ws.cwd / "link").symlink_to("real")
    (ws.cwd / "out").symlink_to("..")
    (ws.cwd / "file").symlink_to("real/a")
    os.mkfifo(ws.cwd / "pipe")

    assert ws.run(Glob(), pattern="**").text == "real/a"


def test_glob_says_that_there_is_more(ws: Workspace) -> None:
    for number in range(5):
        ws.file(f"f{number}")

    result = ws.run(Glob(), pattern="*", limit=3)

    assert result.visible == (
        "f0\nf1\nf2\n\n[only the first 3 files are listed; narrow the pattern]"
    )
    assert result.truncated is True
    assert ws.run(Glob(), pattern="*", limit=5).truncated is False


def test_oversized_output_of_glob_is_cut_at_whole_lines(ws: Workspace) -> None:
    names = [f"{number:02}{'x' * 198}" for number in range(60)]
    for name in names:
        ws.file(name)

    result = ws.run(Glob(), pattern="*")

    path = ws.spill / "1-2.1.1/3.1.2-glob.txt"
    shown = result.text.splitlines()
    assert len(result.visible.encode()) <= 10_240
    assert shown == names[: len(shown)]
    assert len(shown) >= 48
    assert (
        result.notice
        == f"only the first {len(shown)} lines fit; read {str(path)!r} for all of them"
    )
    assert result.truncated is True
    assert result.details == {"count": 60}
    assert path.read_text().splitlines() == names


def test_without_a_place_for_it_the_rest_of_a_listing_is_gone(ws: Workspace) -> None:
    ws.spills = False
    for number in range(60):
        ws.file(f"{number:02}{'x' * 198}")

    assert ws.run(Glob(), pattern="*").notice == "only the first 50 lines fit"


def test_glob_says_that_it_could_not_look_everywhere(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_example.tools.glob.Walk", lambda root: Walk(root, limit=2))
    for name in ("a", "b", "c"):
        ws.file(name)

    result = ws.run(Glob(), pattern="*")

    assert result.visible == (
        "a\nb\n\n[the directory is too large to be searched whole; narrow the path]"
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "PATH_NOT_FOUND]: there is no 'none'"),
        ("file", "NOT_A_DIRECTORY]: 'file' is a file"),
    ],
)
def test_glob_needs_a_directory(ws: Workspace, path: str, message: str) -> None:
    ws.file("file")

    assert ws.error(Glob(), pattern="*", path=path) == f"Error [{message}"


def test_glob_does_not_leave_the_workspace(ws: Workspace) -> None:
    assert ws.error(Glob(), pattern="*", path="..") == (
        "Error [PATH_OUTSIDE_ALLOWED_ROOT]: cannot read '..': "
        f"it leads out of the workspace {str(ws.cwd)!r}"
    )


def test_a_directory_that_cannot_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").touch()
    scan = walk._listed  # noqa: SLF001  what asks the system

    def locked(path: Path) -> object:
        if path.name == "a":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(walk, "_listed", locked)

    assert list(Walk(tmp_path).files()) == ["b"]


def test_a_tree_deeper_than_calls_nest_is_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entries(_self: Walk, folder: str) -> list[tuple[str, bool]]:
        return [(f"{folder}d", len(folder) < 10_000)]

    monkeypatch.setattr(Walk, "_entries", entries)

    assert list(Walk(tmp_path).files()) == ["d/" * 5000 + "d"]


def test_a_cancelled_walk_stops(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    walking = Walk(tmp_path)

    seen = []
    for path in walking.files():
        seen.append(path)
        walking.cancelled = True

    assert (seen, walking.stopped) == (["a"], True)


def test_listing_of_which_one_line_fits_says_so_in_the_singular(ws: Workspace) -> None:
    lines = ["x" * 9000, "y" * 9000]

    result = listing(lines, ws.context(), name="glob", nothing="nothing", notices=["too many"])

    path = ws.spill / "1-2.1.1/3.1.2-glob.txt"
    assert result.visible == (
        f"{lines[0]}\n\n[too many; only the first line fits; read {str(path)!r} for all of them]"
    )


def test_glob_limited_to_one_file_says_so_in_the_singular(ws: Workspace) -> None:
    ws.file("a.py")
    ws.file("b.py")

    result = ws.run(Glob(), pattern="*.py", limit=1)

    assert result.notice == "only the first file is listed; narrow the pattern"
