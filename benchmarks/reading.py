"""What reading a log costs: parsed and derived, beside bare `orjson.loads` over the same lines.

The log is synthetic: 100,000 chunks of reasoning, text and tool arguments, as plain rows and the
same as packed rows. Goals: at least half the speed of `orjson.loads`; at least 5 times as many
chunks a second packed as plain; peak memory at most twice the joined text plus 64 MB. Exits with
1 past 1.25 times a goal.
"""

import argparse
import gc
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from llm_replay.config import ReplayConfig
from llm_replay.script import load_session_scripts, read_calls
from llm_replay.session_log import dump_session_log

TOLERANCE = 1.25
WORDS = (
    "the",
    " token",
    "ization",
    " of",
    " a",
    "\n\n",
    " naïve",
    " “quoted”",
    " src/main.py",
    ",",
)
KINDS = ("reasoning-delta", "text-delta", "tool-call-delta")
RUN = 200
"""How many deltas a block has."""


def main() -> int:
    """Measure, print the table, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        events = list(_events(options.chunks))
        plain, packed = Path(directory, "plain.jsonl"), Path(directory, "packed.jsonl")
        header = {"type": "session", "version": 1, "id": "s", "createdAt": 1}
        plain.write_bytes(dump_session_log(header, events, layout="plain", projected=False))
        packed.write_bytes(dump_session_log(header, events, layout="packed", projected=False))
        text = sum(len(piece) for event in events for piece in _pieces(event["data"]["chunk"]))
        count = len(events)
        del events
        return _judge(plain, packed, count, text, options.rounds)


def _judge(plain: Path, packed: Path, count: int, text: int, rounds: int) -> int:
    bare, derived, from_packed, loaded = _fastest(
        rounds,
        lambda: _loads(plain),
        lambda: read_calls(plain),
        lambda: read_calls(packed),
        lambda: load_session_scripts(ReplayConfig(file=packed)),
    )
    limit = (2 * text + 64 * 2**20) / 2**20
    peak = max(_peak(plain), _peak(packed)) / 2**20
    print(f"{'reading ' + format(count, ',') + ' chunks':<36}{'ms':>10}{'ratio':>16}{'goal':>8}")
    for name, cost, ratio, goal in (
        ("orjson.loads, plain", bare, 1.0, ""),
        ("parsed and derived, plain", derived, bare / derived, "≥ 0.5"),
        ("parsed and derived, packed", from_packed, derived / from_packed, "≥ 5"),
        ("and every call expanded, packed", loaded, derived / loaded, ""),
    ):
        print(f"{name:<36}{cost:>10.1f}{ratio:>16.2f}{goal:>8}")
    print(f"{'peak memory':<36}{peak:>7.0f} MB{peak / limit:>16.2f}{'≤ 1':>8}")
    missed = max(0.5 * derived / bare, 5 * from_packed / derived, peak / limit)
    return 1 if missed > TOLERANCE else 0


def _events(count: int) -> Iterator[dict[str, Any]]:
    """Yield a persisted log: calls with three blocks each, at about 80 tokens a second."""
    draw = random.Random(7)  # noqa: S311  the same log each time
    time_ms = 1_760_000_000_000
    for seq, (turn, chunk) in zip(range(count), _stream(draw), strict=False):
        time_ms += draw.randrange(5, 20)
        data = {"turn": turn, "step": 1, "chunk": chunk}
        yield {"type": "assistant/chunk", "seq": seq, "time": time_ms, "data": data}
    finish = {"type": "finish", "reason": {"kind": "stop"}}
    data = {"turn": turn, "step": 1, "chunk": finish}
    yield {"type": "assistant/chunk", "seq": count, "time": time_ms, "data": data}


def _stream(draw: random.Random) -> Iterator[tuple[int, dict[str, Any]]]:
    turn = 0
    while True:
        turn += 1
        for index, kind in enumerate(KINDS):
            yield turn, {"type": "block-start", "index": index, "blockType": kind}
            for _ in range(RUN):
                yield turn, _delta(kind, index, draw.choice(WORDS))
            yield turn, {"type": "block-end", "index": index, "block": {"type": kind}}
        yield turn, {"type": "finish", "reason": {"kind": "tool-calls"}}


def _delta(kind: str, index: int, piece: str) -> dict[str, Any]:
    if kind != "tool-call-delta":
        return {"type": kind, "index": index, "text": piece}
    call = {"id": "call_00_Zb3kq0Vx7", "name": "bash", "argumentsDelta": piece}
    return {"type": kind, "index": index, **call}


def _pieces(chunk: dict[str, Any]) -> Iterator[str]:
    yield from (chunk[key] for key in ("text", "argumentsDelta") if key in chunk)


def _loads(path: Path) -> None:
    with path.open("rb") as lines:
        for line in lines:
            orjson.loads(line)


def _fastest(rounds: int, *runs: Callable[[], object]) -> list[float]:
    """Return the best milliseconds of processor time of each, measured in turn."""
    return [min(times) for times in zip(*(map(_timed, runs) for _ in range(rounds)), strict=True)]


def _timed(run: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    result = run()
    elapsed = time.process_time() - start
    del result
    return elapsed * 1000


def _peak(path: Path) -> int:
    tracemalloc.start()
    scripts = load_session_scripts(ReplayConfig(file=path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del scripts
    return peak


if __name__ == "__main__":
    sys.exit(main())
