"""Helpers of these tests are modules beside them; their fixtures are known to all."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "loop"))

from loop_fixtures import bench, keyless, offline
from workspace import ws

__all__ = ["bench", "endpoint", "exchange", "keyless", "offline", "ws"]

# Recordings with known answers are not part of this repository.
collect_ignore_glob = [] if os.environ.get("REPLAY_CORPUS") else ["test_*corpus*.py"]
collect_ignore_glob += [f"loop/{pattern}" for pattern in collect_ignore_glob]


@pytest.fixture
def exchange() -> Any:  # noqa: ANN401  its type stands in a module that is slow to import
    """Ask a real HTTP server on the loopback address."""
    from chat_server import exchanging  # noqa: PLC0415  it imports the HTTP client

    return exchanging()


@pytest.fixture
def endpoint() -> Iterator[Any]:
    """Serve a list of models on the loopback address."""
    from model_endpoint import serving  # noqa: PLC0415  it imports an HTTP server

    with serving() as one:
        yield one
