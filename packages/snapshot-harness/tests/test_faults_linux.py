"""What got away from an agent, where the system shows it."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kit import add_scenario, make_suite, refresh, say, text_of

from snapshot_harness import process
from snapshot_harness.suite import Suite

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "scenarios")


def test_what_escaped_from_an_agent_that_failed_is_named_too(suite: Suite) -> None:
    quick = make_suite(suite.directory, "[deadlines]\nstep_s = 1.5\n")

    report = refresh(quick, add_scenario(quick, turns=[[say("Hi")]], fake="escaped hang"))

    assert "waited for the end of the turn" in text_of(report)
    assert re.search(r"killed with the agent: \d+ \(sleep 61\)", text_of(report))


def test_an_interrupt_while_the_agent_is_started_leaves_nothing(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = process._spawn  # noqa: SLF001  where the interrupt comes
    made: list[subprocess.Popen[bytes]] = []

    def interrupted(*arguments: Any) -> None:  # noqa: ANN401  whatever is passed on
        made.append(spawn(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "_spawn", interrupted)
    scenario = add_scenario(suite, turns=[[say("Hi")]], fake="ignore-eof")

    with pytest.raises(KeyboardInterrupt):
        refresh(suite, scenario)

    with made[0] as agent:
        assert agent.wait(10) == -9
