"""A log that ends anywhere loads again, and is repaired once."""

from typing import Any

import pytest
from loop_bench import Bench, FakeTool, Json, Make, window
from loop_checks import check_batches, check_turns
from loop_everything import everything

from acp_example.session import paired
from llm_replay.scripted_model import call, round_, say, scripted

FULL: Json = {"inputTokens": 8000, "outputTokens": 0}


def cut(agent: Bench, data: bytes) -> None:
    """Let the log end there, as a killed process leaves it, and load it."""
    store: Json = agent.host.store
    store.logs["1"][:] = data
    agent.reload()


def check_compactions(events: list[dict[str, Any]]) -> None:
    """Check that every compaction ends once."""
    kinds = [event["type"] for event in events if event["type"].startswith("compaction/")]
    edges = [kind for kind in kinds if kind != "compaction/summary"]
    assert edges == ["compaction/start", "compaction/end"] * (len(edges) // 2)


def test_log_that_ends_after_any_event_is_repaired_once(bench: Make) -> None:
    agent = everything(bench)
    lines = agent.log_bytes().splitlines(keepends=True)

    for end in range(1, len(lines) + 1):
        before = b"".join(lines[:end])
        cut(agent, before)

        repaired, history = agent.log_bytes(), agent.history
        assert repaired.startswith(before)
        check_turns(agent.events)
        check_batches(agent.events)
        check_compactions(agent.events)
        assert paired(history) == history
        assert agent.session.conversation.repair() == []
        agent.reload()
        assert agent.log_bytes() == repaired
        assert agent.history == history


def compacted(bench: Make) -> Bench:
    """An agent that summarised between two steps, and has two more answers."""
    model = scripted(
        say("hello"),
        round_(call("c", "look"), usage=FULL),
        say("the summary"),
        say("done"),
        *[say("usable")] * 2,
        extends=False,
    )
    agent = bench(model=model, tools=[FakeTool("look")])
    window(agent.model, 10_000)
    agent.prompt("first")
    agent.prompt("second")
    return agent


def lines_until(agent: Bench, kind: str, number: int = 1) -> bytes:
    """Return the log up to the last event of a kind before the compaction's end, or so many on."""
    lines = agent.log_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if f'"type":"{kind}"'.encode() in line)
    return b"".join(lines[: last + number])


@pytest.mark.parametrize("copies", [0, 1, 2])
def test_compaction_cut_while_it_replaced_the_history_is_completed(
    bench: Make, copies: int
) -> None:
    agent = compacted(bench)
    whole = agent.history

    cut(agent, lines_until(agent, "compaction/summary", 2 + copies))

    texts = [message["content"][0]["text"] for message in agent.history]
    assert texts == [message["content"][0]["text"] for message in whole[:3]]
    assert texts[1:] == ["first", "second"]
    assert agent.of("compaction/end") == [{"turn": 2, "kept": 2, "removed": 3}]
    assert [event["type"] for event in agent.events][-2:] == ["compaction/end", "turn/end"]
    assert agent.prompt("third").text == "usable"


@pytest.mark.parametrize("kind", ["compaction/start", "compaction/summary"])
def test_compaction_cut_before_it_replaced_the_history_is_given_up(bench: Make, kind: str) -> None:
    agent = compacted(bench)

    cut(agent, lines_until(agent, kind))

    error = {"message": "the session was interrupted", "code": "ABORTED"}
    assert agent.of("compaction/end") == [{"turn": 2, "error": error}]
    assert len(agent.history) == 5
    assert agent.events[-1]["data"]["reason"] == {"kind": "interrupted"}
    assert agent.prompt("third").text == "usable"
