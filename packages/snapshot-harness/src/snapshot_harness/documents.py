"""Hand-written documents, validated whole: every problem at once, each with its line."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from snapshot_harness.exceptions import Problem, ScenarioError

Document = TypeVar("Document", bound=pydantic.BaseModel)


class Strict(pydantic.BaseModel):
    """A table that knows all its keys."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


def read_toml(path: Path, model: type[Document]) -> Document:
    """Read a TOML file as `model`.

    Raises:
        ScenarioError: The file is missing, is no TOML, or says what it may not.
    """
    text = read_text(path)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(problems=[_syntax(path, str(error))]) from None
    return validate(path, text, value, model)


def read_json(path: Path, model: type[Document]) -> Document:
    """Read a JSON file as `model`.

    Raises:
        ScenarioError: The file is missing, is no JSON, or says what it may not.
    """
    text = read_text(path)
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates)
    except ValueError as error:
        raise ScenarioError(problems=[_syntax(path, str(error))]) from None
    return validate(path, text, value, model)


def read_text(path: Path) -> str:
    """Return the text of a file that must be there, and be UTF-8.

    Raises:
        ScenarioError: It is not.
    """
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        what, hint = "the file is missing", f"write {path.name}; the README shows one"
    except UnicodeDecodeError as error:
        what, hint = f"not UTF-8 at byte {error.start}", "save the file as UTF-8"
    raise ScenarioError(problems=[Problem(path=path, line=None, what=what, why="", hint=hint)])


def validate(path: Path, text: str, value: object, model: type[Document]) -> Document:
    """Return `value` as `model`.

    Raises:
        ScenarioError: With every problem found.
    """
    try:
        return model.model_validate(value)
    except pydantic.ValidationError as error:
        problems = [_problem(path, text, model, dict(detail)) for detail in error.errors()]
    raise ScenarioError(problems=problems)


def _syntax(path: Path, message: str) -> Problem:
    line = re.search(r"line (\d+)", message)
    return Problem(
        path=path,
        line=int(line[1]) if line else None,
        what=message,
        why="",
        hint="correct the syntax there",
    )


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return value


def _problem(
    path: Path, text: str, model: type[pydantic.BaseModel], detail: dict[str, Any]
) -> Problem:
    where = tuple(detail["loc"])
    shown = ".".join(str(part) for part in where if not _is_tag(part)) or "the document"
    hint = "the README lists every key and what it takes"
    if detail["type"] == "extra_forbidden":
        what = f"unknown key {where[-1]!r}" + (f" in {shown}" if len(where) > 1 else "")
        known = sorted(set(_known_keys(model, where[:-1])))
        near = difflib.get_close_matches(str(where[-1]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
    elif detail["type"] == "missing":
        what = f"key {where[-1]!r} is missing" + (f" in {shown}" if len(where) > 1 else "")
        hint = f"add {where[-1]!r}"
    else:
        message = str(detail["msg"]).removeprefix("Value error, ")
        what = f"{shown}: {message[:1].lower()}{message[1:]}"
    return Problem(path=path, line=_line_of(text, where), what=what, why="", hint=hint)


def _is_tag(part: object) -> bool:
    """Tell a union's discriminator, which pydantic puts into the place, from a key."""
    return isinstance(part, str) and part.startswith("op:")


def _known_keys(model: type[pydantic.BaseModel], where: tuple[Any, ...]) -> Iterator[str]:
    models: list[type[pydantic.BaseModel]] = [model]
    for part in where:
        if isinstance(part, int):
            continue
        models = [found for one in models for found in _below(one, str(part))]
    for one in models:
        for name, field in one.model_fields.items():
            yield field.alias or name


def _below(model: type[pydantic.BaseModel], part: str) -> list[type[pydantic.BaseModel]]:
    """Return the models that stand under key `part`; a union's tag picks one of them."""
    if part.startswith("op:"):
        return [model] if f"op:{model.model_fields['op'].default}" == part else []
    for name, field in model.model_fields.items():
        if part in (name, field.alias):
            return list(_models_in(field.annotation))
    return [model]


def _models_in(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:  # noqa: ANN401  any annotation
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
        return
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def _line_of(text: str, where: tuple[Any, ...]) -> int | None:
    """Return the line that names the last key of `where`: a good guess, for a click."""
    position, found = 0, None
    for part in where:
        if not isinstance(part, str) or _is_tag(part):
            continue
        match = re.compile(rf'"?\b{re.escape(part)}\b"?\s*[\]=:.]').search(text, position)
        if match:
            position = found = match.start()
    return None if found is None else text.count("\n", 0, found) + 1
