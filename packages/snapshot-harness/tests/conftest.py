"""Helpers of these tests are modules beside them."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Recordings with known answers are not part of this repository.
collect_ignore_glob = [] if os.environ.get("REPLAY_CORPUS") else ["test_*corpus*.py"]

# Only Linux shows other processes' environment, by which these tests find what is left.
if sys.platform != "linux":
    collect_ignore_glob.append("test_*linux*.py")


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary directory of its own, in which nothing may stay; nor any process or pipe.

    And all is over before the deadline that a step has by default.
    """
    from kit import open_files, processes_with, run_directories  # noqa: PLC0415  found from here on

    from snapshot_harness.suite import Deadlines  # noqa: PLC0415  for those who need it
    from snapshot_harness.watchdog import WATCHDOG  # noqa: PLC0415  for those who need it

    assert tmp_path.is_dir()  # made before the place for such directories moves
    # Not below pytest's own: a run directory's path has a fixed length.
    directory = Path(tempfile.mkdtemp(prefix="f"))
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    WATCHDOG.add_group(2**22)  # so that it runs already
    WATCHDOG.drop_group(2**22)
    before, started = open_files(), time.monotonic()
    yield
    assert time.monotonic() - started < Deadlines().step_s
    assert open_files() <= before
    assert run_directories(directory) == []
    assert processes_with(f"DSH_SNAPSHOT_RUN={directory}") == []
    directory.rmdir()
