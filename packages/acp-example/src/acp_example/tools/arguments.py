"""Reading a call's arguments against its tool's schema. No I/O."""

import json
from collections.abc import Mapping
from typing import Any, Final

from acp_example.exceptions import ToolError

_ECHO: Final = 200
_TOLD: Final = 8
_DEPTH: Final = 100
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def parse(raw: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read a call's raw arguments; an empty string means none, a null means left out.

    Raises:
        ToolError: VALIDATION_ERROR, with the first problems and how many more there are.
    """
    value = loads(raw)
    if not isinstance(value, dict):
        raise _refusal([f"the arguments must be a JSON object, not {_echo(raw)}"])
    problems = list(_problems(value, schema, "arguments"))
    if problems:
        raise _refusal(problems)
    return {key: _without_nulls(part) for key, part in value.items() if part is not None}


def loads(raw: str) -> Any:  # noqa: ANN401  any JSON value
    """Decode raw arguments.

    Raises:
        ToolError: VALIDATION_ERROR, if they are not JSON, or nested deeper than code that
            looks into them can follow.
    """
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _refusal([f"the arguments are not JSON ({error}): {_echo(raw)}"]) from None
    if _deeper(value, _DEPTH):
        raise _refusal([f"the arguments are nested more than {_DEPTH} deep"])
    return value


def _deeper(value: object, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        nested = (part for part in level if isinstance(part, dict | list))
        level = [
            one for part in nested for one in (part.values() if isinstance(part, dict) else part)
        ]
        if not level:
            return False
    return any(isinstance(part, dict | list) for part in level)


def _refusal(problems: list[str]) -> ToolError:
    rest = len(problems) - _TOLD
    told = [*problems[:_TOLD], *([f"and {rest} more problems"] if rest > 1 else problems[_TOLD:])]
    return ToolError("VALIDATION_ERROR", "; ".join(told))


def _echo(sent: object) -> str:
    """Quote what was sent, but not at any length."""
    if isinstance(sent, str):
        return f"{sent[:_ECHO]!r}{_rest(sent)}"
    return _json(sent)


def _json(sent: object) -> str:
    text = json.dumps(sent)
    return f"{text[:_ECHO]}{_rest(text)}"


def _rest(text: str) -> str:
    return f" and {len(text) - _ECHO} more" if len(text) > _ECHO else ""


def _problems(value: Any, schema: Mapping[str, Any], place: str) -> list[str]:  # noqa: ANN401
    kind = schema.get("type")
    if kind is not None and not _is(value, kind):
        return [f"{place} must be {_article(kind)}, not {_json(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [
            f"{place} must be one of {', '.join(map(repr, schema['enum']))}, not {_echo(value)}"
        ]
    if isinstance(value, dict):
        return _object_problems(value, schema, place)
    if isinstance(value, list):
        return _array_problems(value, schema, place)
    return _scalar_problems(value, schema, place)


def _scalar_problems(value: Any, schema: Mapping[str, Any], place: str) -> list[str]:  # noqa: ANN401
    match value:
        case str() if len(value) < schema.get("minLength", 0):
            return [f"{place} must not be empty"]
        case int() | float() if value < schema.get("minimum", value):
            return [f"{place} must be at least {schema['minimum']}, not {_echo(value)}"]
        case int() | float() if value > schema.get("maximum", value):
            return [f"{place} must be at most {schema['maximum']}, not {_echo(value)}"]
        case _:
            return []


def _object_problems(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> list[str]:
    known = schema.get("properties", {})
    required = schema.get("required", [])
    problems = [f"{place} lacks {key!r}" for key in required if value.get(key) is None]
    if schema.get("additionalProperties") is False:
        extra = [key for key in value if key not in known]
        offered = ", ".join(repr(key) for key in known) or "none"
        problems += [f"{place} has an unknown key {_echo(key)} (known: {offered})" for key in extra]
    for key, part in value.items():
        if key in known and part is not None:
            problems += _problems(part, known[key], f"{place}.{key}")
    return problems


def _array_problems(value: list[Any], schema: Mapping[str, Any], place: str) -> list[str]:
    problems: list[str] = []
    if len(value) < schema.get("minItems", 0):
        problems.append(f"{place} must have at least {schema['minItems']} items")
    items = schema.get("items", {})
    for index, part in enumerate(value):
        problems += _problems(part, items, f"{place}[{index}]")
    return problems


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  any JSON value
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
