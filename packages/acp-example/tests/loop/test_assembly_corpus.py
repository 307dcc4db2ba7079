import json
import os
from pathlib import Path

import pytest
from loop_bench import Json

from acp_example.assembly import Assembler

CASES = json.loads((Path(os.environ["REPLAY_CORPUS"]) / "cases" / "assembler.json").read_text())


def answers(chunks: list[Json]) -> Json:
    made = Assembler()
    for chunk in chunks:
        made.push(chunk)
    return {
        "blocks": made.blocks(),
        "interruptedBlocks": made.interrupted_blocks(),
        "finish": made.finish,
        "usage": made.usage,
        "replayState": made.replay_state(),
    }


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_assembler_answers_as_the_reference_does(case: Json) -> None:
    if case["name"].startswith("BAD"):
        with pytest.raises(ValueError, match="no chunk has the type"):
            answers(case["chunks"])
        return

    found = answers(case["chunks"])

    assert found == {key: case[key]["value"] for key in found}


def test_every_case_is_here() -> None:
    assert len(CASES["cases"]) >= 17
