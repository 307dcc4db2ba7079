"""Put the kits of these tests on the path, and find recordings with known answers.

The recordings are no part of this tree; REPLAY_CORPUS says where they are.
"""

import os
import sys
from pathlib import Path

import hypothesis
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "reading"), str(HERE / "serving")]

from log_kit import Told  # noqa: E402  the path comes first
from replay_kit import Runtime  # noqa: E402  the same

from llm_replay.__main__ import main  # noqa: E402  the same

# No deadlines: what a loaded machine takes long for is no failure.
hypothesis.settings.register_profile("llm-replay", deadline=None)
hypothesis.settings.load_profile("llm-replay")

CORPUS = os.environ.get("REPLAY_CORPUS")

collect_ignore_glob = [] if CORPUS else ["*/test_corpus*.py"]


@pytest.fixture(scope="session")
def corpus() -> Path:
    path = Path(CORPUS or "")
    assert (path / "recordings").is_dir(), f"REPLAY_CORPUS={CORPUS} has no recordings"
    return path


@pytest.fixture
def told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Told:
    """Run the command in an empty directory and in a terminal of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)

    def run(*argv: str, status: int = 0) -> str:
        assert main(argv) == status
        return "".join(capsys.readouterr())

    return run


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


@pytest.fixture
def verdict_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "verdict"
    directory.mkdir()
    return directory
