"""Helpers of these tests are modules beside them; their fixtures are known to all."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from chat_server import exchange

__all__ = ["exchange"]
