from pathlib import Path

import pytest

from acp_example.exceptions import ToolError
from acp_example.paths import Access, roots_for

OUT = "it leads out of the workspace"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A workspace with links in and out of it, beside a folder it has no business in."""
    root = tmp_path.resolve()
    (root / "ws/sub").mkdir(parents=True)
    (root / "outside").mkdir()
    (root / "spill").mkdir()
    (root / "ws/file").touch()
    (root / "outside/file").touch()
    (root / "ws/link-in").symlink_to("sub")
    (root / "ws/link-out").symlink_to(root / "outside")
    (root / "ws/file-out").symlink_to("../outside/file")
    (root / "ws/loop").symlink_to("loop")
    return root


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("file", "ws/file"),
        (".", "ws"),
        ("sub/../file", "ws/file"),
        ("./sub//new", "ws/sub/new"),
        ("new/deeper", "ws/new/deeper"),
        ("link-in/x", "ws/sub/x"),
        ("{root}/ws/file", "ws/file"),
        ("{root}/spill/1/out", "spill/1/out"),
        ("../ws/file", "ws/file"),
        ("loop", "ws/loop"),
        ("~/x", "ws/~/x"),
        ("..", None),
        ("../outside/file", None),
        ("sub/../../outside", None),
        ("{root}/outside/file", None),
        ("{root}/ws-not", None),
        ("/", None),
        ("/etc/passwd", None),
        ("file-out", None),
        ("link-out/file", None),
        ("link-out/new", None),
        ("link-in/../../outside", None),
        ("link-out/../ws/file", "ws/file"),
    ],
)
@pytest.mark.parametrize("access", ["read", "write"])
def test_path_policy(tree: Path, path: str, leads_to: str | None, access: Access) -> None:
    policy = roots_for("workspace-write", cwd=tree / "ws", others=[tree / "spill"])
    path = path.format(root=tree)

    if leads_to is not None:
        assert policy.resolve(path, access=access) == tree / leads_to
        return
    with pytest.raises(ToolError) as caught:
        policy.resolve(path, access=access)
    assert str(caught.value) == (
        f"Error [PATH_OUTSIDE_ALLOWED_ROOT]: cannot {access} {path!r}: {OUT} {str(tree / 'ws')!r}"
    )


def test_a_workspace_that_is_a_link_is_where_it_leads(tree: Path) -> None:
    (tree / "door").symlink_to("ws")

    policy = roots_for("workspace-write", cwd=tree / "door")

    assert policy.base == tree / "ws"
    assert policy.resolve("file", access="write") == tree / "ws/file"


def test_read_only_reads_and_never_writes(tree: Path) -> None:
    policy = roots_for("read-only", cwd=tree / "ws")

    assert policy.resolve("file", access="read") == tree / "ws/file"
    with pytest.raises(ToolError) as caught:
        policy.resolve("file", access="write")
    assert str(caught.value) == (
        "Error [PERMISSION_DENIED]: cannot write 'file': this session is read-only"
    )


def test_full_access_goes_anywhere(tree: Path) -> None:
    policy = roots_for("full-access", cwd=tree / "ws")

    assert policy.resolve("link-out/file", access="write") == tree / "outside/file"
    assert policy.resolve("../outside", access="read") == tree / "outside"


def test_an_unknown_mode_may_not_write(tree: Path) -> None:
    with pytest.raises(ToolError, match="PERMISSION_DENIED"):
        roots_for("whatever", cwd=tree).resolve("x", access="write")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "a path is empty"),
        ("a\0b", r"'a\x00b' cannot be a path"),
        ("a\ud83d", r"'a\ud83d' cannot be a path"),
    ],
)
def test_what_is_no_path_is_refused(tree: Path, path: str, why: str) -> None:
    with pytest.raises(ToolError) as caught:
        roots_for("full-access", cwd=tree).resolve(path, access="read")
    assert str(caught.value) == f"Error [VALIDATION_ERROR]: {why}"


def test_paths_are_shown_from_the_working_directory(tree: Path) -> None:
    policy = roots_for("full-access", cwd=tree / "ws")

    assert policy.display(tree / "ws/sub/x") == "sub/x"
    assert policy.display(tree / "ws") == "."
    assert policy.display(tree / "outside/file") == f"{tree}/outside/file"
