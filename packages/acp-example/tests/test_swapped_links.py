"""What becomes a link after it was checked, and before it is used, is not followed."""

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from workspace import CALL, Workspace

from acp_example import nofollow
from acp_example.exceptions import ToolError
from acp_example.nofollow import open_real
from acp_example.paths import Access
from acp_example.spill import SpillRoot
from acp_example.tools import PathPolicy, Tool, ToolResult, files
from acp_example.tools.edit import Edit
from acp_example.tools.files import replace_file
from acp_example.tools.glob import Glob
from acp_example.tools.grep import Grep
from acp_example.tools.grep_worker import search
from acp_example.tools.read import Read
from acp_example.tools.walk import Walk
from acp_example.tools.write import Write

PNG = b"\x89PNG\r\n\x1a\nSECRET"
LINKS = "Too many levels of symbolic links"


@dataclass
class Swapping:
    """A path policy in whose wake somebody puts links where the checked path was."""

    policy: PathPolicy
    swap: Callable[[], None]

    @property
    def base(self) -> Path:
        return self.policy.base

    def resolve(self, path: str, *, access: Access) -> Path:
        real = self.policy.resolve(path, access=access)
        self.swap()
        return real

    def display(self, path: Path) -> str:
        return self.policy.display(path)


@pytest.fixture
def outside(ws: Workspace) -> Path:
    """A folder that the session has no business in, with the names of the one it has."""
    outside = ws.cwd.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("SECRET\n")
    (outside / "a.png").write_bytes(PNG)
    ws.file("sub/f", "inside\n")
    ws.file("sub/a.png", PNG.replace(b"SECRET", b"inside"))
    ws.images = True
    ws.read_files.add(ws.cwd / "sub/f")
    return outside


def swap_folder(ws: Workspace, outside: Path) -> None:
    if not (ws.cwd / "sub").is_symlink():
        (ws.cwd / "sub").rename(ws.cwd / "moved")
        (ws.cwd / "sub").symlink_to(outside)


def swap_file(ws: Workspace, outside: Path) -> None:
    for name in ("f", "a.png"):
        (ws.cwd / "sub" / name).unlink()
        (ws.cwd / "sub" / name).symlink_to(outside / name)


def run(ws: Workspace, tool: Tool, swap: Callable[[], None], **arguments: Any) -> ToolResult:  # noqa: ANN401  any JSON
    """Run a tool under a policy that swaps; it sees what was there when the path was checked."""
    context = ws.context()
    context = replace(context, policy=Swapping(context.policy, swap))
    return asyncio.run(tool.run(arguments, context))


EDIT = [{"old_text": "SECRET", "new_text": "gone"}]


@pytest.mark.parametrize("swap", [swap_folder, swap_file])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (Read(), {"path": "sub/f"}),
        (Read(), {"path": "sub/a.png"}),
        (Write(), {"path": "sub/f", "content": "written"}),
        (Edit(), {"path": "sub/f", "edits": EDIT}),
    ],
    ids=["read", "picture", "write", "edit"],
)
def test_a_file_behind_a_new_link_is_neither_read_nor_written(
    ws: Workspace,
    outside: Path,
    tool: Tool,
    arguments: dict[str, Any],
    swap: Callable[[Workspace, Path], None],
) -> None:
    with pytest.raises(ToolError) as caught:
        run(ws, tool, lambda: swap(ws, outside), **arguments)

    assert str(caught.value) == f"Error [EXECUTION_ERROR]: {arguments['path']!r}: {LINKS}"
    assert (outside / "f").read_text() == "SECRET\n"
    assert sorted(entry.name for entry in outside.iterdir()) == ["a.png", "f"]


@pytest.mark.parametrize("path", ["sub/new", "sub/deeper/new"])
def test_nothing_is_made_behind_a_new_link(ws: Workspace, outside: Path, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        run(ws, Write(), lambda: swap_folder(ws, outside), path=path, content="written")

    assert str(caught.value) == f"Error [EXECUTION_ERROR]: {path!r}: {LINKS}"
    assert sorted(entry.name for entry in outside.iterdir()) == ["a.png", "f"]


def test_a_file_that_became_a_link_while_it_was_read_is_not_replaced(
    ws: Workspace, outside: Path
) -> None:
    swap_file(ws, outside)

    with pytest.raises(ToolError) as caught:
        replace_file(ws.cwd / "sub/f", "written", "sub/f")

    assert str(caught.value) == f"Error [EXECUTION_ERROR]: 'sub/f': {LINKS}"
    assert (outside / "f").read_text() == "SECRET\n"


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_link_under_the_name_of_the_new_file_is_not_written_through(
    ws: Workspace, outside: Path, link: Callable[[Path, Path], None]
) -> None:
    link(outside / "f", ws.cwd / f".acp-example-{os.getpid()}.new")

    ws.run(Write(), path="new", content="written")

    assert (outside / "f").read_text() == "SECRET\n"
    assert (ws.cwd / "new").read_text() == "written"


@pytest.mark.parametrize("tool", [Glob(), Grep()], ids=["glob", "grep"])
def test_a_folder_behind_a_new_link_is_not_searched(
    ws: Workspace, outside: Path, tool: Tool
) -> None:
    with pytest.raises(ToolError) as caught:
        run(ws, tool, lambda: swap_folder(ws, outside), pattern="f", path="sub")

    assert str(caught.value) == f"Error [EXECUTION_ERROR]: 'sub': {LINKS}"


@pytest.mark.parametrize("swap", [swap_folder, swap_file])
def test_a_file_behind_a_new_link_is_not_searched(
    ws: Workspace, outside: Path, swap: Callable[[Workspace, Path], None]
) -> None:
    with pytest.raises(ToolError) as caught:
        run(ws, Grep(), lambda: swap(ws, outside), pattern="SECRET|inside", path="sub/f")

    assert str(caught.value) == f"Error [EXECUTION_ERROR]: 'sub/f': {LINKS}"


def test_a_folder_that_becomes_a_link_during_a_walk_is_not_entered(
    ws: Workspace, outside: Path
) -> None:
    ws.file("first")
    files = Walk(ws.cwd).files()

    assert next(files) == "first"
    swap_folder(ws, outside)

    assert list(files) == []


def test_a_file_that_becomes_a_link_after_a_walk_is_not_searched(
    ws: Workspace, outside: Path
) -> None:
    files = [(str(ws.cwd / "sub/f"), "sub/f"), (str(ws.cwd / "sub/a.png"), "sub/a.png")]
    query = {"pattern": "SECRET", "ignoreCase": False, "limit": 9, "files": files}

    for swap in (swap_file, swap_folder):
        swap(ws, outside)
        assert search(query) == {"matches": [], "more": False}


def test_a_link_in_the_place_of_spilled_output_is_not_written_through(
    ws: Workspace, outside: Path
) -> None:
    (ws.spill / "1-2.1.1").mkdir(parents=True)
    place = ws.spill / "1-2.1.1/3.1.2-out"
    place.symlink_to(outside / "f")

    path = SpillRoot(ws.spill).write(CALL, "out", "long")

    assert (path, path.read_text(), path.is_symlink()) == (place, "long", False)
    assert (outside / "f").read_text() == "SECRET\n"


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ws.file("f", "inside\n")

    def swapped(name: str, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return open_real(name, flags)

    monkeypatch.setattr(files, "open_real", swapped)

    assert ws.error(Read(), path="f") == ("Error [NOT_A_FILE]: 'f' is a pipe, a socket or a device")


def test_paths_are_opened_part_by_part_where_folders_must_be_opened_to_be_passed(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    monkeypatch.setattr(nofollow, "_PASSING", passing)

    ws.run(Write(), path="a/b/c", content="made")

    assert ws.run(Read(), path="a/b/c").text == "a/b/c\n     1\tmade"
    assert ws.run(Glob(), pattern="**").text == "a/b/c"


def test_the_root_of_all_paths_is_a_folder() -> None:
    assert stat.S_ISDIR(nofollow.status_of("/").st_mode)


def test_looking_at_paths_leaves_no_descriptor_open(ws: Workspace, outside: Path) -> None:
    def descriptors() -> int:
        return sum(_is_open(number) for number in range(256))

    before = descriptors()
    ws.run(Write(), path="a/b/c", content="made")
    ws.run(Glob(), pattern="**")
    swap_folder(ws, outside)
    for path in ("sub/f", "none/f", "a/b/c/d"):
        ws.error(Read(), path=path)

    assert descriptors() == before


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
