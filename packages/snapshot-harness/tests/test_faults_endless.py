"""What never stops, or gets away: a run ends all the same, and leaves nothing."""

import json
import re
import sys
from pathlib import Path

import pytest
from kit import add_scenario, make_suite, refresh, say, text_of, use

from snapshot_harness import shell
from snapshot_harness.suite import Suite

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "scenarios")


@pytest.mark.parametrize("fake", ["endless-frames", "endless-child"])
def test_an_agent_that_never_stops_writing_is_stopped(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, fake: str
) -> None:
    monkeypatch.setattr(shell, "MOST_FRAMES", 5000)

    report = refresh(suite, add_scenario(suite, turns=[[say("Hi")]], fake=fake))

    assert re.search(r"the agent wrote \d+ frames, \d+ bytes, and seems to go on", text_of(report))


def test_a_child_that_never_stops_writing_is_killed_when_the_agent_has_ended(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "MOST_FRAMES", 10**9)

    report = refresh(suite, add_scenario(suite, turns=[[say("Hi")]], fake="endless-child"))

    assert "left processes behind, which were killed: " in text_of(report)


def test_a_terminals_child_that_escaped_holds_nothing_up(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "scenarios", "[capabilities]\nterminal = true")
    escape = "import subprocess; subprocess.Popen(['sleep', '62'], start_new_session=True)"
    create = json.dumps({"command": sys.executable, "args": ["-c", escape]})
    done = json.dumps({"terminalId": "terminal-1"})
    commands = (f"client terminal/create {create}", f"client terminal/wait_for_exit {done}")
    scenario = add_scenario(suite, turns=[[use(*commands), say("Done")]])

    report = refresh(suite, scenario)

    if sys.platform == "linux":
        assert "left processes behind, which were killed: " in text_of(report)
        assert "(sleep 62)" in text_of(report)
