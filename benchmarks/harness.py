"""What collecting and running scenarios costs, beside plain tests and a plain process.

Collecting 100 empty scenarios takes at most 1.5 times as long as 100 empty test functions; a
scenario costs at most 15 ms more than spawning the same agent and feeding it the same frames by
hand. Exits with 1 past 1.25 times a goal.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from snapshot_harness.environment import ScriptFiles, agent_environment
from snapshot_harness.modes import Mode
from snapshot_harness.run import run_scenario
from snapshot_harness.rundir import make_run_directory
from snapshot_harness.suite import Scenario, Suite, read_suite
from snapshot_harness.watchdog import WATCHDOG

AGENT = Path(__file__).parent.parent / "packages/snapshot-harness/tests/fake_agent.py"
COLLECTION_GOAL = 1.5
OVERHEAD_GOAL_MS = 15.0
TOLERANCE = 1.25
COUNT = 100

STEPS = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Hi"}]
CHUNKS = [
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "text-delta", "index": 0, "text": "Hello"},
    {"type": "block-end", "index": 0, "block": {"type": "text", "text": "Hello"}},
    {"type": "finish", "reason": {"kind": "stop"}},
]


def main() -> int:
    """Measure, print the table, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scenarios, functions = _collection(Path(folder), options.rounds)
        ours, bare = _running(Path(folder), options.runs)
    WATCHDOG.close()
    ratio, overhead = scenarios / functions, ours - bare
    print(f"{'harness':<36}{'ours':>10}{'bare':>8}{'':>8}{'goal':>8}")
    print(f"{'collecting 100, ms':<36}{scenarios:>10.0f}{functions:>8.0f}{ratio:>8.2f}{'≤ 1.5':>8}")
    print(f"{'running one, ms':<36}{ours:>10.1f}{bare:>8.1f}{overhead:>+8.1f}{'≤ +15':>8}")
    slow = ratio > COLLECTION_GOAL * TOLERANCE or overhead > OVERHEAD_GOAL_MS * TOLERANCE
    return 1 if slow else 0


def _collection(folder: Path, rounds: int) -> tuple[float, float]:
    """Return the milliseconds of collecting scenarios and functions: the best of some rounds."""
    functions, suite = folder / "functions", folder / "suite"
    for directory in (functions, suite):
        directory.mkdir()
    text = "".join(f"def test_{number}():\n    pass\n\n\n" for number in range(COUNT))
    (functions / "test_empty.py").write_text(text)
    (suite / "suite.toml").write_text('command = ["agent"]\n')
    for number in range(COUNT):
        (suite / f"s{number}").mkdir()
        (suite / f"s{number}" / "scenario.toml").write_text('why = "w"\norigin = "authored"\n')
    times = [(_timed(lambda: _collect(suite)), _timed(lambda: _collect(functions)))
             for _ in range(rounds)]  # fmt: skip
    ours, bare = (min(column) for column in zip(*times, strict=True))
    return ours, bare


def _collect(directory: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    subprocess.run(  # noqa: S603  a constant
        [*command, str(directory)], cwd=directory, check=True, stdout=subprocess.DEVNULL
    )


def _running(folder: Path, runs: int) -> tuple[float, float]:
    """Return the milliseconds of a run, ours and by hand: the best of some, in turn."""
    suite, scenario = _scenario(folder / "scenarios")
    directory = make_run_directory()
    try:
        files = ScriptFiles(scenario.directory / "session.jsonl")
        env = agent_environment(directory, files, {})
        times = [
            (
                _timed(lambda: run_scenario(suite, scenario, Mode.REPLAY)),
                _timed(lambda: _by_hand(env, directory.cwd)),
            )
            for _ in range(runs)
        ]
    finally:
        directory.remove()
    ours, bare = (min(column) for column in zip(*times, strict=True))
    return ours, bare


def _scenario(directory: Path) -> tuple[Suite, Scenario]:
    scenario = directory / "one"
    scenario.mkdir(parents=True)
    command = json.dumps([sys.executable, str(AGENT)])
    (directory / "suite.toml").write_text(f"command = {command}\n")
    (scenario / "scenario.toml").write_text('why = "w"\norigin = "authored"\n')
    (scenario / "input.json").write_text(json.dumps({"steps": STEPS}))
    header = {"type": "session", "version": 1, "id": "{{session:1}}", "lineage": "1", "tokens": 1}
    data = [{"turn": 1, "step": 1, "chunk": chunk} for chunk in CHUNKS]
    rows = [header, *({"type": "assistant/chunk", "data": one} for one in data)]
    (scenario / "session.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite = read_suite(directory / "suite.toml")
    report = run_scenario(suite, Scenario(scenario), Mode.REFRESH).report
    if report.outcome != "passed":
        raise RuntimeError(report.problems)
    return suite, Scenario(scenario)


def _by_hand(env: Mapping[str, str], cwd: Path) -> None:
    """Spawn the agent, feed it what the driver would, and wait for its end."""
    with subprocess.Popen(  # noqa: S603  a constant
        [sys.executable, str(AGENT)],
        env=env,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        session = ""
        for number, method in enumerate(("initialize", "session/new", "session/prompt"), 1):
            prompt = [{"type": "text", "text": "Hi"}]
            params = {"sessionId": session, "prompt": prompt, "cwd": str(cwd), "mcpServers": []}
            frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(frame).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            while answer.get("id") != number:
                answer = json.loads(process.stdout.readline())
            session = answer["result"].get("sessionId", session)
        process.stdin.close()
        process.stdout.read()


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    sys.exit(main())
