"""A restart in the middle of what the agent says."""

import json
import sys
from pathlib import Path

import pytest
from kit import START, add_scenario, make_suite, refresh

AGENT = """
import json, os, sys

for line in sys.stdin:
    frame = json.loads(line)
    result = {"sessionId": "s"} if frame["method"] == "session/new" else {}
    said = [{"jsonrpc": "2.0", "id": frame["id"], "result": result}]
    for text in ("one", "two", "three") if frame["method"] == "session/new" else ():
        content = {"type": "text", "text": text}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        params = {"sessionId": "s", "update": update}
        said.append({"jsonrpc": "2.0", "method": "session/update", "params": params})
    os.write(1, "".join(json.dumps(one) + "\\n" for one in said).encode())
"""


@pytest.mark.parametrize("kill", [False, True])
def test_frames_that_came_in_one_piece_stand_before_the_restart(
    tmp_path: Path, *, kill: bool
) -> None:
    suite = make_suite(
        tmp_path, 'log = "none"\nverdict = "optional"', command=[sys.executable, "-c", AGENT]
    )
    update = {"sessionUpdate": "agent_message_chunk", "content": {"text": "one"}}
    restart = {"op": "restartAgent", "kill": kill}
    steps = [*START, {**restart, "wait": {"op": "waitForUpdate", "update": update}}, START[0]]
    scenario = add_scenario(suite, steps=steps)

    report = refresh(suite, scenario)

    assert report.outcome == "passed"
    transcript = (scenario.directory / "stdout.expected.jsonl").read_text().splitlines()
    frames = [json.loads(line) for line in transcript]
    assert [frame.get("method", frame.get("id", frame.get("snapshot"))) for frame in frames] == [
        1,
        2,
        "session/update",
        "session/update",
        "session/update",
        "restart",
        3,
    ]
