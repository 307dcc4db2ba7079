"""What a served chunk costs, beside a bare async generator; the goal is at most 3 times as much.

Exits with 1 past 1.25 times the goal.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

from llm_replay.chunks import Chunk
from llm_replay.replay import Replay
from llm_replay.script import SessionScript
from llm_replay.tokens import Roots

GOAL = 3.0
TOLERANCE = 1.25


def main() -> int:
    """Measure, print the table, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    plain = [_delta("some words") for _ in range(options.chunks)]
    cases = {"served": plain, "served, a token in every 1,000th": _with_tokens(plain, 1000)}
    print(f"{'serving':<36}{'ns/chunk':>10}{'bare':>8}{'ratio':>8}{'goal':>8}")
    worst = 0.0
    for name, chunks in cases.items():
        ours, bare = _measure(chunks, options.rounds)
        worst = max(worst, ours / bare)
        print(f"{name:<36}{ours:>10.0f}{bare:>8.0f}{ours / bare:>8.2f}{'≤ 3':>8}")
    return 1 if worst > GOAL * TOLERANCE else 0


def _delta(text: str) -> Chunk:
    return {"type": "text-delta", "index": 0, "text": text}


def _with_tokens(chunks: list[Chunk], every: int) -> list[Chunk]:
    return [
        _delta("in {{cwd}}") if place % every == 0 else chunk for place, chunk in enumerate(chunks)
    ]


def _measure(chunks: list[Chunk], rounds: int) -> tuple[float, float]:
    """Return nanoseconds a chunk, ours and bare: the best of some rounds, in turn."""
    times = [(_timed(_served(chunks)), _timed(_bare(chunks))) for _ in range(rounds)]
    ours, bare = (min(column) for column in zip(*times, strict=True))
    return ours / len(chunks), bare / len(chunks)


def _timed(stream: AsyncGenerator[Chunk, None]) -> int:
    async def read() -> int:
        start = time.perf_counter_ns()
        async for _ in stream:
            pass
        return time.perf_counter_ns() - start

    return asyncio.run(read())


def _served(chunks: list[Chunk]) -> AsyncGenerator[Chunk, None]:
    entry: dict[str, Any] = {"kind": "chunks", "chunks": chunks}
    script = SessionScript(
        recorded_id="", created_at=0, entries=[entry], primary=True, file="log", tokens=True
    )
    request = SimpleNamespace(messages=[], session_id="live")
    return Replay([script], roots=Roots(cwd="/tmp/run/cwd")).stream(request)  # noqa: S108  a name


async def _bare(chunks: list[Chunk]) -> AsyncGenerator[Chunk, None]:
    for chunk in chunks:
        yield chunk


if __name__ == "__main__":
    sys.exit(main())
