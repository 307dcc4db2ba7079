"""Every input.json of the recordings is read; operations that are not ours are refused by name."""

import os
import re
from pathlib import Path

from snapshot_harness.exceptions import ScenarioError
from snapshot_harness.steps import read_script

RECORDINGS = Path(os.environ["REPLAY_CORPUS"]) / "recordings"
NOT_OURS = {"waitForGoalPhase", "waitForInboxMessage", "waitForTitleAfterTurnEnd"}


def test_every_recorded_script_is_read() -> None:
    paths = sorted(RECORDINGS.rglob("input.json"))
    refused = []
    for path in paths:
        try:
            read_script(path)
        except ScenarioError as error:
            refused += [problem.what for problem in error.problems]

    assert len(paths) > 60
    named = [re.match(r"unknown operation '(\w+)' in ", what) for what in refused]
    assert {match and match[1] for match in named} <= NOT_OURS
