import shutil
from pathlib import Path

import pytest

from snapshot_harness.modes import Mode
from snapshot_harness.report import failure_text
from snapshot_harness.run import run_scenario
from snapshot_harness.suite import Suite, read_suite

SCENARIOS = Path(__file__).parents[3] / "scenarios"

LISTEN = """
import os, socket, sys
out = open({out!r}, "a", buffering=1)
out.write("listening\\n")

def hear(event, args):
    if event == "socket.__new__" and args[1] in (socket.AF_INET, socket.AF_INET6):
        out.write("made a socket\\n")
    if event in ("socket.connect", "socket.getaddrinfo"):
        out.write(event + "\\n")

sys.addaudithook(hear)
if any("KEY" in name for name in os.environ):
    out.write("has a key\\n")
"""

# The slow command waits for the fact that the other one is done.
CAT = """#!/bin/sh
if [ "$1" = {slow} ]; then
  until [ -e "$TMPDIR/done" ]; do :; done
fi
echo "$1" >> {order}
/bin/cat "$1"
: > "$TMPDIR/done"
"""


def copied(folder: Path, *names: str, extra: str = "") -> Suite:
    for path in SCENARIOS.glob("agent*.toml"):
        shutil.copy(path, folder)
    for name in names:
        shutil.copytree(SCENARIOS / name, folder / name)
    (folder / "suite.toml").write_text((SCENARIOS / "suite.toml").read_text() + extra)
    return read_suite(folder / "suite.toml")


def test_replay_passes_no_key_on_and_opens_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = tmp_path / "heard"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(LISTEN.format(out=str(heard)))
    folder = tmp_path / "suite"
    folder.mkdir()
    suite = copied(folder, "bash-tool-turn", extra=f'\n[env]\nPYTHONPATH = "{hooks}"\n')
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-anything-at-all-0123456789")

    report = run_scenario(suite, suite.scenarios[0], Mode.REPLAY).report

    assert report.outcome == "passed", failure_text(report)
    assert set(heard.read_text().splitlines()) == {"listening"}


@pytest.mark.parametrize("slow", ["summer.txt", "winter.txt"])
def test_two_tools_replay_the_same_whichever_ends_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    programs, order = tmp_path / "bin", tmp_path / "order"
    programs.mkdir()
    (programs / "cat").write_text(CAT.format(slow=slow, order=order))
    (programs / "cat").chmod(0o755)
    folder = tmp_path / "suite"
    folder.mkdir()
    suite = copied(folder, "two-tools")
    monkeypatch.setenv("PATH", str(programs), prepend=":")

    for _ in range(10):
        report = run_scenario(suite, suite.scenarios[0], Mode.REPLAY).report

        assert report.outcome == "passed", failure_text(report)

    fast = {"summer.txt", "winter.txt"} - {slow}
    assert order.read_text().split() == [*fast, slow] * 10
