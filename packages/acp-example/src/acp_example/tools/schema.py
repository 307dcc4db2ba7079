"""JSON Schemas of tool arguments, in few words. No I/O."""

from collections.abc import Mapping
from typing import Any


def object_of(
    properties: Mapping[str, Mapping[str, Any]], *, required: list[str]
) -> dict[str, Any]:
    """Return the schema of an object that admits no other keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def string(description: str) -> dict[str, Any]:
    """Return the schema of a text, which may be empty."""
    return {"type": "string", "description": description}


def name(description: str) -> dict[str, Any]:
    """Return the schema of a text that says something: a path, a pattern, a command."""
    return {"type": "string", "minLength": 1, "description": description}


def integer(description: str, *, minimum: int = 1) -> dict[str, Any]:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": minimum, "description": description}


def boolean(description: str) -> dict[str, Any]:
    """Return the schema of a yes or no."""
    return {"type": "boolean", "description": description}


def text_of(arguments: Mapping[str, Any], key: str, default: str = "") -> str:
    """Return a text out of arguments that a model may have filled with anything."""
    value = arguments.get(key)
    return value if isinstance(value, str) and value else default
