"""Hand-written documents, validated whole: every problem at once, each with its line."""

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_origin

import pydantic

from llm_replay.jsonl import DEPTH
from llm_replay.values import nests_deeper
from snapshot_harness.exceptions import Problem, ScenarioError
from snapshot_harness.json_value import finite
from snapshot_harness.locate import Part, line_in_json, line_in_toml

Document = TypeVar("Document", bound=pydantic.BaseModel)
Locate = Callable[[str, Sequence[Part]], int | None]

_SEE = "the README lists every key and what it takes"
_MAKES = {"suite.toml": "`snapshot-harness init -- COMMAND` makes one"}
_ELSEWHERE: Mapping[str, str] = {
    "waitForGoalPhase": "use waitForEvent with the type goal/change",
    "waitForInboxMessage": "use waitForEvent with the type agent/inbox/spliced",
    "waitForTitleAfterTurnEnd": "use waitForEvent with the type session/title, after turn/end",
    "waitForEventAfterTurnEnd": "use waitForEvent, after turn/end",
}
"""Operations of other tools that stand for one of ours."""


class Strict(pydantic.BaseModel):
    """A table that knows all its keys."""

    model_config = pydantic.ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
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
    except (ValueError, RecursionError) as error:
        raise ScenarioError(problems=[_syntax(path, error)]) from None
    return _validate(path, text, value, model, locate=line_in_toml)


def read_json(path: Path, model: type[Document]) -> Document:
    """Read a JSON file as `model`.

    Raises:
        ScenarioError: The file is missing, is no JSON, or says what it may not.
    """
    text = read_text(path)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_number,
            parse_float=finite,
        )
    except (ValueError, RecursionError) as error:
        raise ScenarioError(problems=[_syntax(path, error)]) from None
    if nests_deeper(value, DEPTH):  # here, wherever this version of Python would give up
        raise ScenarioError(problems=[_syntax(path, RecursionError())])
    return _validate(path, text, value, model, locate=line_in_json)


def read_text(path: Path) -> str:
    """Return the text of a file that must be there, and be UTF-8.

    Raises:
        ScenarioError: It is not.
    """
    try:
        text = path.read_text("utf-8")
        if not text.startswith("\ufeff"):
            return text
        what, hint = "the file begins with a byte-order mark", "save it as UTF-8 without one"
    except FileNotFoundError:
        what = "the file is missing"
        hint = _MAKES.get(path.name) or f"write {path.name}; the README shows one"
    except UnicodeDecodeError as error:
        what, hint = f"not UTF-8 at byte {error.start}", "save the file as UTF-8"
    raise ScenarioError(problems=[Problem(path=path, what=what, hint=hint)])


def _validate(
    path: Path, text: str, value: object, model: type[Document], *, locate: Locate
) -> Document:
    try:
        return model.model_validate(value)
    except pydantic.ValidationError as error:
        found: dict[tuple[str, int | None], Problem] = {}
        for detail in error.errors():
            place = _Place(model, detail["loc"])
            what, hint = _told(place, dict(detail))
            line = locate(text, place.parts)
            # A value that may be of several kinds is one problem, not one per kind.
            key = what if detail["type"] in {"missing", "extra_forbidden"} else place.shown
            found.setdefault((key, line), Problem(path=path, line=line, what=what, hint=hint))
    problems = sorted(found.values(), key=lambda problem: problem.line or 0)
    raise ScenarioError(problems=problems)


def _syntax(path: Path, error: Exception) -> Problem:
    deep = f"nested too deeply: more than {DEPTH} levels"
    message = deep if isinstance(error, RecursionError) else str(error)
    line = re.search(r"line (\d+)", message)
    number = int(line[1]) if line else None
    return Problem(path=path, line=number, what=message, hint="correct the syntax there")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return value


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON: there is no such number")


def _told(place: "_Place", detail: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    kind = detail["type"]
    inside = f" in {place.around}" if place.around else ""
    if kind == "extra_forbidden":
        return f"unknown key {place.last!r}{inside}", _nearest(place.last, place.known)
    if kind == "missing":
        return f"key {place.last!r} is missing{inside}", f"add {place.last!r}"
    if kind == "union_tag_not_found":
        return f"{place.shown}: no operation", "add 'op'"
    if kind == "union_tag_invalid":
        tag = detail["ctx"]["tag"]
        known = sorted(re.findall(r"'(\w+)'", detail["ctx"]["expected_tags"]))
        hint = _ELSEWHERE.get(tag) or _nearest(tag, known)
        return f"unknown operation {tag!r} in {place.shown}", hint
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{place.shown}: {message[:1].lower()}{message[1:]}", _SEE


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


class _Place:
    """Where in a document a problem is: pydantic's place without the tags of its unions."""

    def __init__(self, model: type[pydantic.BaseModel], where: Sequence[Part]) -> None:
        self.parts: list[Part] = []
        models: list[type[pydantic.BaseModel]] = [model]
        holders, leaf = models, False
        for part in where:
            tagged = [one for one in models if _tag_of(one) == part]
            if tagged and not any(_field(one, part) for one in tagged):
                models = tagged
                continue
            if leaf:
                break
            self.parts.append(part)
            if isinstance(part, str):
                holders = models
                fields = [field for one in models if (field := _field(one, part)) is not None]
                models = [found for field in fields for found in _models_in(field.annotation)]
                leaf = not models and not any(_is_open(field.annotation) for field in fields)
        self.last = str(self.parts[-1]) if self.parts else ""
        self.known = sorted({name for one in holders for name in _names(one)})

    @property
    def shown(self) -> str:
        """The place as one would write it."""
        return _dotted(self.parts) or "the document"

    @property
    def around(self) -> str:
        """The place around the last key."""
        return _dotted(self.parts[:-1])


def _dotted(parts: Sequence[Part]) -> str:
    return ".".join(str(part) for part in parts)


def _tag_of(model: type[pydantic.BaseModel]) -> object:
    field = model.model_fields.get("op")
    return None if field is None else field.default


def _field(model: type[pydantic.BaseModel], part: Part) -> Any:  # noqa: ANN401  pydantic's
    for name, field in model.model_fields.items():
        if part == (field.alias or name):
            return field
    return None


def _names(model: type[pydantic.BaseModel]) -> Iterator[str]:
    return (field.alias or name for name, field in model.model_fields.items())


def _models_in(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:  # noqa: ANN401  any annotation
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def _is_open(annotation: Any) -> bool:  # noqa: ANN401  any annotation
    """Tell whether a value of this kind has places of its own that are no fields."""
    inner = getattr(annotation, "__args__", ())
    return get_origin(annotation) in {dict, list} or any(_is_open(one) for one in inner)
