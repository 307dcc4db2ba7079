import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapshot_harness.rundir import (
    LENGTH,
    PARTS,
    RunDirectory,
    RunDirectoryError,
    make_run_directory,
    remove_tree,
    sweep,
)


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    assert tmp_path.is_dir()  # made before the place for such directories moves
    directory = Path(tempfile.mkdtemp(prefix="d"))
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory
    assert list(directory.iterdir()) == []
    directory.rmdir()


def test_a_run_directory_has_its_parts_its_mode_and_a_fixed_length(temp: Path) -> None:
    directory = make_run_directory()

    assert directory.path.parent == temp
    assert len(str(directory.path)) == LENGTH
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert sorted(entry.name for entry in directory.path.iterdir()) == sorted([*PARTS, "lock"])
    assert directory.cwd == directory.path / "cwd"
    directory.remove()


def test_two_runs_never_meet(temp: Path) -> None:
    first, second = make_run_directory(), make_run_directory()

    first.remove()

    assert second.cwd.is_dir()
    assert sorted(temp.iterdir()) == [second.path]
    second.remove()


def test_a_temporary_directory_behind_a_link_is_resolved(
    tmp_path: Path, temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(temp)
    monkeypatch.setattr(tempfile, "tempdir", str(link))

    with_link = make_run_directory()

    assert with_link.path.parent == temp
    with_link.remove()


def test_a_cwd_elsewhere_has_the_same_length_and_goes_with_the_run(temp: Path) -> None:
    parent = Path(tempfile.mkdtemp(prefix="e", dir="/tmp"))
    heard: list[Path] = []

    directory = make_run_directory(workspace_parent=parent, announce=heard.append)

    assert directory.cwd.parent == parent
    assert len(str(directory.cwd)) == LENGTH
    assert heard == [directory.path, directory.cwd]
    assert not (directory.path / "cwd").exists()
    assert directory.removals == [directory.cwd, directory.path]
    directory.remove()
    parent.rmdir()
    assert temp.exists()


def test_a_cwd_that_cannot_be_made_leaves_nothing(temp: Path, tmp_path: Path) -> None:
    assert temp.exists()
    with pytest.raises(FileNotFoundError):
        make_run_directory(workspace_parent=Path("/tmp/nowhere"))
    with pytest.raises(RunDirectoryError, match="set workspace_parent to a short directory"):
        make_run_directory(workspace_parent=tmp_path / ("x" * 80))


@pytest.mark.parametrize(
    ("name", "what"),
    [("a b", "has a character other than those"), ("x" * 70, "is too long by 24 characters")],
)
def test_a_temporary_directory_that_can_hold_no_run_is_refused(
    temp: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    place = temp / name
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    # The length of the directory above moves.
    what = what.replace("24", str(12 - (LENGTH - len(f"{place}/acpsnap-"))))

    with pytest.raises(RunDirectoryError) as caught:
        make_run_directory()

    assert what in str(caught.value)
    assert "hint: set TMPDIR to a short directory" in str(caught.value)
    place.rmdir()


def test_the_sweep_takes_what_nobody_holds(temp: Path) -> None:
    held = make_run_directory()
    left = make_run_directory()
    os.close(left.lock)
    killed: list[Path] = []

    assert sweep(killed.append) == [left.path]

    assert killed == [left.path]
    assert held.path.exists()
    held.remove()
    assert temp.exists()


def test_the_sweep_takes_a_cwd_elsewhere_along(temp: Path) -> None:
    parent = Path(tempfile.mkdtemp(prefix="e", dir="/tmp"))
    left = make_run_directory(workspace_parent=parent)
    os.close(left.lock)

    sweep()

    assert list(parent.iterdir()) == []
    parent.rmdir()
    assert temp.exists()


def test_the_sweep_leaves_the_workspace_that_another_run_made_beside_it(temp: Path) -> None:
    held = make_run_directory(workspace_parent=temp)

    assert sweep() == []

    assert held.cwd.is_dir()
    held.remove()
    assert list(temp.iterdir()) == []


@pytest.mark.parametrize("told", ["/etc", "relative", "/tmp/acpsnap-cwd-0123456789ab"])
def test_the_sweep_believes_no_place_that_no_run_makes(temp: Path, told: str) -> None:
    left = make_run_directory()
    (left.path / "elsewhere").write_text(told)
    os.close(left.lock)

    assert sweep() == [left.path]
    assert temp.exists()


def test_the_sweep_takes_a_directory_that_has_no_lock_yet(temp: Path) -> None:
    path = temp / ("acpsnap-" + "0" * (LENGTH - len(f"{temp}/acpsnap-")))
    path.mkdir()

    assert sweep() == []

    assert not path.exists()


def test_the_sweep_passes_over_what_its_own_run_removes_meanwhile(
    temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run_directory()
    open_file = os.open

    def gone_by_then(path: Path | str, *rest: int, **named: int) -> int:
        if path == run.path / "lock":
            shutil.rmtree(run.path)
        return open_file(path, *rest, **named)

    monkeypatch.setattr(os, "open", gone_by_then)

    assert sweep() == []

    assert list(temp.iterdir()) == []
    os.close(run.lock)


def test_the_sweep_leaves_what_is_not_ours(temp: Path) -> None:
    others = [temp / "acpsnap-x", temp / "acpsnap-0123456789abcdef", temp / "other"]
    for path in others:
        path.mkdir()
    file = temp / ("acpsnap-" + "0" * (LENGTH - len(f"{temp}/acpsnap-")))
    file.touch()

    assert sweep() == []

    file.unlink()
    for path in others:
        path.rmdir()


def test_the_users_lock_is_taken_again_where_its_holder_removed_it(
    temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = temp / f".acpsnap-{os.getuid()}.lock"
    real, calls = fcntl.flock, []

    def flock(file: int, how: int) -> None:
        real(file, how)
        calls.append(how)
        if len(calls) == 1:
            path.unlink()
        if len(calls) == 2:
            path.unlink()
            path.touch()

    monkeypatch.setattr(fcntl, "flock", flock)

    make_run_directory().remove()

    assert len(calls) == 4  # gone, another's, ours; and the run's own


def test_a_tree_that_the_agent_made_unwritable_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (root / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    inner.chmod(0o500)
    (root / "a").chmod(0o000)

    remove_tree(root)

    assert not root.exists()
    assert (tmp_path / "kept").is_dir()


def test_a_tree_that_is_gone_is_no_reason_to_touch_what_is_around_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    remove_tree(tmp_path / "gone")

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_directory_that_goes_while_it_is_swept_is_no_error(
    temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = make_run_directory()
    os.close(left.lock)
    real = os.open

    def gone(path: Path, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if path == left.path / "lock":
            shutil.rmtree(left.path)
        return real(path, flags, *rest, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", gone)

    assert sweep() == []
    assert temp.exists()


def test_what_rmtree_gives_up_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user sees it: root may remove everything, so the failures are made up."""
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "file").touch()

    def rmtree(path: Path, *, onerror: object = None, ignore_errors: bool = False) -> None:
        if callable(onerror):
            onerror(os.rmdir, str(root / "a"), None)
            onerror(os.unlink, str(root / "file"), None)
            onerror(os.unlink, str(root / "gone"), None)
        else:
            assert ignore_errors
            Path(path).rmdir()

    monkeypatch.setattr(shutil, "rmtree", rmtree)

    remove_tree(root)

    assert list(root.iterdir()) == []


def test_a_lock_that_is_closed_already_is_no_error(temp: Path) -> None:
    made = make_run_directory()
    os.close(made.lock)

    RunDirectory(made.path, made.cwd, made.lock).remove()

    assert temp.exists()
