"""Any JSON value: its type, and how a message shows it. No I/O."""

import json
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What JSON can say; callers look before they use it."""


def as_text(value: Json, limit: int = 2000) -> str:
    """Return a value as JSON on one line; what is beyond `limit` is cut."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else f"{text[:limit]}…"
