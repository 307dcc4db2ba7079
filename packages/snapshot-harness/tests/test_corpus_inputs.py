"""Every input.json of the recordings is read; operations that are not ours are refused by name."""

import json
import os
from pathlib import Path

from snapshot_harness.exceptions import ScenarioError
from snapshot_harness.steps import read_script

RECORDINGS = Path(os.environ["REPLAY_CORPUS"]) / "recordings"
NOT_OURS = {"waitForGoalPhase", "waitForInboxMessage", "waitForTitleAfterTurnEnd"}


def test_every_recorded_script_is_read() -> None:
    paths = sorted(RECORDINGS.rglob("input.json"))
    refused = []
    for path in paths:
        operations = {step["op"] for step in json.loads(path.read_text())["steps"]}
        try:
            read_script(path)
        except ScenarioError:
            refused.append(operations & NOT_OURS)

    assert len(paths) > 60
    assert all(refused)
