"""Sibling sessions that replay side by side, from logs, through the real replay plugin."""

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Make
from loop_store import MemoryStore

from acp_example.tools import ToolContext
from acp_example.tools.task import Task
from llm_replay import ReplayConfig, install_llm_replay
from llm_replay.scripted_model import call, round_, say

LINEAGES = ("1", "1/1.1.1", "1/1.1.2", "1/1.1.2/1.2.1", "1/1.1.3")


def task(call_id: str, prompt: str) -> Any:  # noqa: ANN401  what a script is made of
    return call(call_id, "task", {"prompt": prompt, "description": prompt})


def resting(seed: int) -> FakeTool:
    chance = random.Random(seed)  # noqa: S311  chance of no consequence

    async def rest(_given: Mapping[str, Any], _context: ToolContext) -> str:
        for _ in range(chance.randrange(60)):
            await asyncio.sleep(0)
        return "rested"

    return FakeTool("rest", rest)


def told(agent: Bench) -> dict[str, list[Any]]:
    """Return what every session said, called and was answered, in the order of its log."""
    return {
        lineage: [
            (event["type"], event["data"].get("chunk"), texts(event["data"]))
            for event in agent.log(lineage).events
        ]
        for lineage in LINEAGES
    }


def texts(data: Mapping[str, Any]) -> Any:  # noqa: ANN401  any content
    return data.get("message", data).get("content")


@pytest.mark.parametrize("seed", range(20))
def test_three_children_and_a_grandchild_replay_at_any_speed(
    bench: Make, tmp_path: Path, seed: int
) -> None:
    rest = [call("r", "rest"), call("r", "rest", {"again": True})]
    live = bench(
        round_(task("1", "a"), task("2", "b"), task("3", "c")),
        say("done"),
        children=[
            [rest[0], say("a is short")],
            [rest[0], task("deep", "d"), rest[1], say("b asked d")],
            [*rest, say("c rested twice")],
            [rest[0], say("d is deep")],
        ],
        tools=[Task(), FakeTool("rest", "rested")],
        rebuild=False,
    )
    live.prompt()
    assert isinstance(live.host.store, MemoryStore)
    files = []
    for number, lineage in enumerate(LINEAGES):
        files.append(tmp_path / f"session.{number}.jsonl")
        files[-1].write_bytes(live.host.store.logs[lineage])

    again = bench(tools=[Task(), resting(seed)], rebuild=False, checked=False)
    replay = install_llm_replay(again.llm, ReplayConfig(file=files[0], child_files=files[1:]))
    again.prompt()

    replay.assert_consumed()
    assert told(again) == told(live)
