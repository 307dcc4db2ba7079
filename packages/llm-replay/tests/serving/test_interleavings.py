import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from replay_kit import Request, facts, serving

from llm_replay.chunks import Chunk
from llm_replay.exceptions import RecordedFailureError, ReplayExhaustedError
from llm_replay.replay import Replay
from llm_replay.rounds import Step

KINDS = ("chunks", "throw", "hang")
Shape = list[tuple[str, int]]  # the kind of each call, and its number of chunks

shapes = st.lists(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3)), max_size=3),
    min_size=1,
    max_size=3,
)
moves = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["read", "read", "read", "close"])), max_size=40
)


@dataclass
class Consumer:
    """One live session that asks for a stream, reads some of it, and asks again."""

    index: int
    stream: AsyncGenerator[Chunk, None] | None = None
    seen: list[list[int]] = field(default_factory=list)
    too_many: int = 0

    async def move(self, model: Replay, what: str, shape: Shape) -> None:
        if self.stream is None:
            if len(self.seen) < len(shape):
                self.seen.append([])
            self.stream = model.stream(Request(session_id=str(self.index)))
            return
        try:
            kind, count = shape[len(self.seen) - 1] if shape else ("chunks", 0)
            if what == "close" or (kind == "hang" and len(self.seen[-1]) == count):
                await self.stream.aclose()
            else:
                chunk = await anext(self.stream)
                assert chunk["type"] == "text-delta"
                self.seen[-1].append(int(chunk["text"]))
                return
        except (StopAsyncIteration, RecordedFailureError):
            assert len(self.seen[-1]) == count
        except ReplayExhaustedError:
            self.too_many += 1
        self.stream = None


def entry(shape: tuple[str, int], base: int) -> Step:
    kind, count = shape
    chunks = [{"type": "text-delta", "index": 0, "text": str(base + k)} for k in range(count)]
    failure = {"message": "m", "code": "C"} if kind == "throw" else {}
    return {"kind": kind, "chunks": chunks, **failure}


@given(shapes, moves)
def test_sessions_that_interleave_in_any_way_read_their_own_calls_and_the_verdict_says_so(
    scripts: list[Shape], schedule: list[tuple[int, str]]
) -> None:
    async def run(model: Replay) -> list[Consumer]:
        consumers = [Consumer(index) for index in range(len(scripts))]
        for consumer in consumers:  # so that each takes the script of its own number
            if scripts[consumer.index]:
                await consumer.move(model, "read", scripts[consumer.index])
        for who, what in schedule:
            if who < len(scripts) and scripts[who]:
                await consumers[who].move(model, what, scripts[who])
        return consumers

    primary, *children = [
        [entry(shape, 100 * place + 10 * number) for number, shape in enumerate(script)]
        for place, script in enumerate(scripts)
    ]
    with tempfile.TemporaryDirectory() as directory:
        model = serving(*primary, children=children, verdict=Path(directory))
        consumers = asyncio.run(run(model))
        model.close()
        told = facts(Path(directory))

    for consumer, script in zip(consumers, scripts, strict=True):
        for number, seen in enumerate(consumer.seen):
            base = 100 * consumer.index + 10 * number
            assert seen == [base + k for k in range(len(seen))]
            assert len(seen) <= script[number][1]
    asked = {(c.index, call) for c in consumers for call in range(1, len(c.seen) + 1)}
    kinds = Counter((fact["fact"], fact.get("script"), fact.get("call")) for fact in told)
    for fact in ("call", "served"):
        assert {key[1:] for key in kinds if key[0] == fact} == asked
    assert {count for key, count in kinds.items() if key[0] in {"call", "served"}} <= {1}
    bound = [fact["script"] for fact in told if fact["fact"] == "bound"]
    assert sorted(bound) == [place for place, script in enumerate(scripts) if script]
