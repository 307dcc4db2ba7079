"""The type of any JSON value. No I/O."""

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What JSON can say; callers look before they use it."""
