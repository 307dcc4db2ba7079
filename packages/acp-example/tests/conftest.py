"""Helpers of these tests are modules beside them; their fixtures are known to all."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from chat_server import exchange
from workspace import ws

__all__ = ["exchange", "ws"]

# Recordings with known answers are not part of this repository.
collect_ignore_glob = [] if os.environ.get("REPLAY_CORPUS") else ["test_*corpus*.py"]
