"""Recordings of another harness: its transcripts are fixed points, its logs after one step."""

import json
import os
from pathlib import Path

import pytest

from llm_replay.session_log import SessionLog, read_session_log
from snapshot_harness.compare import compare
from snapshot_harness.fixtures import find_logs, log_bytes, transcript_bytes
from snapshot_harness.normalize import normalize_fixture
from snapshot_harness.rules import Identity, Rules

RECORDINGS = Path(os.environ["REPLAY_CORPUS"]) / "recordings"
DIRECTORIES = sorted({path.parent for path in RECORDINGS.rglob("*.jsonl")})
WITH_LOGS = [path for path in DIRECTORIES if find_logs(path)]
TRANSCRIPTS = sorted(RECORDINGS.rglob("*.expected.jsonl"))
MERGED = Rules(identity="merged")


def name(path: Path) -> str:
    return str(path.relative_to(RECORDINGS))


def logs_of(directory: Path) -> list[SessionLog]:
    return [read_session_log(path.read_bytes(), name=path.name) for path in find_logs(directory)]


def test_the_recordings_are_there() -> None:
    assert len(WITH_LOGS) >= 80
    assert len(TRANSCRIPTS) >= 70


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=name)
@pytest.mark.parametrize("beside_logs", [False, True])
def test_a_transcript_is_a_fixed_point_under_merged_identity(
    path: Path, *, beside_logs: bool
) -> None:
    frames = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    logs = logs_of(path.parent) if beside_logs else []

    done = normalize_fixture(logs, frames, rules=MERGED)

    assert transcript_bytes(done.transcript) == path.read_bytes()


@pytest.mark.parametrize("directory", WITH_LOGS, ids=name)
@pytest.mark.parametrize("identity", ["merged", "numbered"])
def test_logs_are_a_fixed_point_after_one_normalization(
    directory: Path, identity: Identity
) -> None:
    rules = Rules(identity=identity)
    once = normalize_fixture(logs_of(directory), [], rules=rules)
    written = [log_bytes(one, layout="packed") for one in once.logs]

    again = [read_session_log(data) for data in written]
    twice = normalize_fixture(again, [], rules=rules)

    assert [log_bytes(one, layout="packed") for one in twice.logs] == written
    assert compare(once, twice) == []
