import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from replay_kit import facts, text_call, told, write_log

CHILD = Path(__file__).with_name("serving_child.py")
SYSTEM_CALLS = 7  # open; installed; link and unlink of a claim; bound; call; served

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, verdict_dir: Path) -> Run:
    logs = [
        write_log(tmp_path / f"session.{n}.jsonl", text_call(f"{n}a"), text_call(f"{n}b"))
        for n in range(4)
    ]

    def run(
        session: str, calls: int, *, kill_at: int = 0, dispose: bool = False
    ) -> "subprocess.Popen[str]":
        arguments = [session, str(calls), str(kill_at), *map(str, logs)]
        told_to = {"DISPOSE": "1"} if dispose else {}
        return subprocess.Popen(  # noqa: S603  our own child
            [sys.executable, str(CHILD), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "VERDICT": str(verdict_dir), **told_to},
        )

    return run


def words(processes: Sequence["subprocess.Popen[str]"]) -> list[list[str]]:
    """Let all processes go on at once, and return what each one read before it was killed."""
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    return [output.split() for output in outputs]


def test_a_killed_process_leaves_every_fact_it_told(start: Run, verdict_dir: Path) -> None:
    assert words([start("s", 2)]) == [["0a", "0b"]]

    assert told(verdict_dir) == ["bound 0 s", "call 0.1", "served 0.1", "call 0.2", "served 0.2"]


def test_the_session_of_a_killed_process_goes_on_after_its_last_call(
    start: Run, verdict_dir: Path
) -> None:
    seen = [words([start(session, 1)]) for session in ("a", "b", "b", "a")]

    assert seen == [[["0a"]], [["1a"]], [["1b"]], [["0b"]]]
    calls = Counter((fact["script"], fact.get("call")) for fact in facts(verdict_dir))
    assert set(calls.values()) == {2}  # call and served; bound in two processes


def test_the_session_of_a_process_that_ended_in_order_goes_on_too(
    start: Run, verdict_dir: Path
) -> None:
    seen = [words([start(session, 1, dispose=True)]) for session in ("a", "b", "b", "a", "c")]

    assert seen == [[["0a"]], [["1a"]], [["1b"]], [["0b"]], [["2a"]]]
    assert list(verdict_dir.glob("*.claim")) == []


@pytest.mark.parametrize("kill_at", range(1, SYSTEM_CALLS + 1))
def test_a_kill_at_any_point_leaves_the_truth_and_a_way_on(
    start: Run, verdict_dir: Path, kill_at: int
) -> None:
    assert words([start("s", 1, kill_at=kill_at)]) == [[]]
    before = told(verdict_dir)
    asked = before.count("call 0.1")

    assert before == ["bound 0 s", "call 0.1", "served 0.1"][: len(before)]
    assert words([start("s", 2 - asked)]) == [["0a", "0b"][asked:]]
    counts = Counter(told(verdict_dir))
    assert (counts["call 0.1"], counts["call 0.2"], counts["served 0.2"]) == (1, 1, 1)
    assert words([start("other", 2)]) == [["1a", "1b"]]


def test_processes_that_begin_together_never_serve_the_same_script(
    start: Run, verdict_dir: Path
) -> None:
    seen = words([start(f"s{n}", 2) for n in range(4)])

    assert sorted(seen) == [[f"{n}a", f"{n}b"] for n in range(4)]
    calls = [fact for fact in told(verdict_dir) if fact.startswith("call")]
    assert sorted(calls) == [f"call {n}.{k}" for n in range(4) for k in (1, 2)]
    assert sorted(path.name for path in verdict_dir.glob("*.claim")) == [
        f"{n}.claim" for n in range(4)
    ]
