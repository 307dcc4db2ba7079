"""Helpers of these tests are modules beside them."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# Recordings with known answers are not part of this repository.
collect_ignore_glob = [] if os.environ.get("REPLAY_CORPUS") else ["test_*corpus*.py"]

# Only Linux shows other processes' environment, by which these tests find what is left.
if sys.platform != "linux":
    collect_ignore_glob.append("test_*linux*.py")
