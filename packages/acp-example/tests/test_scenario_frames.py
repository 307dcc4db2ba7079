"""Every frame that a scenario expects is one of the protocol's, by the SDK's own models."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp_wire import REQUESTS, RESULTS
from pydantic import ValidationError

TRANSCRIPTS = sorted(
    (Path(__file__).parents[3] / "scenarios").glob("*/stdout.expected.jsonl"),
    key=lambda path: path.parent.name,
)


def frames(transcript: Path) -> list[dict[str, Any]]:
    """Return the agent's frames; the harness's own marks between them are left out."""
    records = [json.loads(line) for line in transcript.read_text().splitlines()]
    return [record for record in records if "snapshot" not in record]


def is_result(result: Any) -> bool:  # noqa: ANN401  any JSON
    """Say whether some method of the protocol answers like that."""
    for model in RESULTS.values():
        try:
            model.model_validate(result, extra="forbid")
        except ValidationError:
            continue
        return True
    return False


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.parent.name)
def test_frames_of_a_scenario_are_the_protocols(transcript: Path) -> None:
    for frame in frames(transcript):
        assert frame["jsonrpc"] == "2.0"
        if "method" in frame:
            REQUESTS[frame["method"]].model_validate(frame["params"], extra="forbid")
        elif "result" in frame:
            assert is_result(frame["result"]), frame
        else:
            assert {"code", "message"} <= set(frame["error"])


def test_there_are_scenarios_to_check() -> None:
    assert len(TRANSCRIPTS) > 50
