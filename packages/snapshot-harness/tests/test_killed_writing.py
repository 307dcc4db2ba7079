"""Workers of a recording run, killed wherever they write: every scenario is old or new."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kit import HELLO, add_scenario, make_suite, replay, text_of

from snapshot_harness.atomic import pending, roll_forward
from snapshot_harness.record import record_scenario
from snapshot_harness.suite import Scenario

PATIENT = """
keys = ["FAKE_KEY"]
[deadlines]
step_s = 240
scenario_s = 280
shutdown_s = 120
"""
"""Eight workers on a busy machine are slow, and only the kills shall end a scenario early."""

POINTS = 13
HALF = [f"kill-{number}" for number in range(1, 7)]
"""Those killed inside a write. It has seven points: two files, the list and its name, their two
names, the end of the list. Before the first nothing is begun; the last numbers are not killed."""

KILLER = """
import os, signal, sys
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
left = {}

def hook(event, arguments):
    if event not in {"open", "os.rename", "os.remove"}:
        return
    if event == "open" and not (arguments[2] or 0) & WRITING:
        return
    directory, _, _ = str(arguments[0]).rpartition("/")
    name = directory.rpartition("/")[2]
    if name.startswith("kill-") and ".snapshot" not in directory:
        count = left[name] = left.get(name, int(name[5:])) - 1
        if count < 0:
            os.kill(os.getpid(), signal.SIGKILL)

if "PYTEST_XDIST_WORKER" in os.environ:
    sys.addaudithook(hook)
"""


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_killed_while_recording_side_by_side_each_scenario_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", "k")
    suite = make_suite(tmp_path / "scenarios", PATIENT)
    clean = add_scenario(suite, "clean", origin="recorded")
    assert record_scenario(suite, clean, say=lambda _: None).report.outcome == "passed"
    prompt = {"op": "prompt", "text": "Something else"}
    killed = [suite.directory / f"kill-{number}" for number in range(POINTS)]
    for directory in killed:
        shutil.copytree(clean.directory, directory)
        add_scenario(suite, directory.name, steps=[*HELLO[:2], prompt], origin="recorded")
        for name, data in files(clean.directory).items():
            if name != "input.json":
                (directory / name).write_bytes(data)
    old = files(killed[0])
    add_scenario(suite, "clean", steps=[*HELLO[:2], prompt], origin="recorded")
    record_scenario(suite, Scenario(clean.directory), say=lambda _: None)
    new = files(clean.directory)
    assert old != new
    (tmp_path / "killer.py").write_text(KILLER)

    run = subprocess.run(  # noqa: S603  this interpreter
        [
            *(sys.executable, "-m", "pytest", str(suite.directory), "-p", "killer", "-n", "8"),
            *("-p", "no:cacheprovider", "--snapshot-mode=record", "--snapshot-record=kill-*"),
            "--max-worker-restart=50",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "CI": ""},
        capture_output=True,
        check=False,
        timeout=300,
    )

    half = [directory for directory in killed if pending(directory)]
    assert [directory.name for directory in half] == HALF, run.stdout.decode()
    for directory in (half[0], half[-1]):
        before = files(directory)
        assert "a write of this scenario was interrupted" in text_of(
            replay(suite, Scenario(directory))
        )
        assert files(directory) == before
    for directory in half:
        roll_forward(directory)
    ended = [files(directory) for directory in killed]
    assert [one in (old, new) for one in ended] == [True] * POINTS
    assert old in ended
    assert ended[-1] == new
