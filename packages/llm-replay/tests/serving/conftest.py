"""Put the kit of these tests on the path, and give each test a runtime and a verdict directory."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from replay_kit import Runtime


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


@pytest.fixture
def verdict_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "verdict"
    directory.mkdir()
    return directory
