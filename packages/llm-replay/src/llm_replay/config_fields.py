"""Read one hand-written object field by field, and keep every problem with its place. No I/O."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from llm_replay.exceptions import ConfigError, Problem
from llm_replay.values import shown

MOST = 2**53 - 1
"""The largest number that every reader takes exactly."""

T = TypeVar("T")
C = TypeVar("C", bound=str)


class Fields:
    """The fields of one object: each is asked for once; `finish` names those nobody asked for.

    A reading method answers with a harmless value where it found a problem, so that one pass
    finds them all. No key may be `null`: a key that says nothing is left out.
    """

    def __init__(self, place: str, value: Mapping[str, Any], problems: list[Problem]) -> None:
        self._place = place
        self._value = value
        self._problems = problems
        self._asked: list[str] = []

    def problem(self, key: str, what: str) -> None:
        """Keep a problem of `key`."""
        self._problems.append(Problem(f"{self._place}.{key}" if self._place else key, what))

    def text(self, key: str) -> str | None:
        """Return a string that isn't empty, or `None` where there is none."""
        found: str | None = self._read(key, _is_text, "must be a string that isn't empty")
        return found

    def path(self, key: str) -> str | None:
        """Return the name of a file, or `None` where there is none."""
        found = self.text(key)
        self._refuse_nul(key, found)
        return found

    def paths(self, key: str) -> tuple[str, ...]:
        """Return a list of names of files."""
        found = self.texts(key)
        for index, item in enumerate(found):
            self._refuse_nul(f"{key}[{index}]", item)
        return found

    def required_text(self, key: str) -> str:
        """Return a string that isn't empty and has to be there."""
        if key not in self._value:
            self.problem(key, "is missing")
        return self.text(key) or ""

    def texts(self, key: str, *, default: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a list of strings that aren't empty."""
        found = self._list(key, default)
        for index, item in enumerate(found):
            if not _is_text(item):
                self.problem(f"{key}[{index}]", "must be a string that isn't empty")
        return tuple(found)

    def choice(self, key: str, choices: Sequence[C]) -> C | None:
        """Return one of `choices`, or `None` where there is none."""
        known = _listed(choices)
        found = self._read(key, lambda value: value in choices, f"must be {known}")
        return found if found is None or found in choices else None

    def choices(self, key: str, choices: Sequence[C], *, default: Sequence[C]) -> tuple[C, ...]:
        """Return a list of some of `choices`, at least one, or `default` where there is none."""
        found = self._list(key, default)
        if not found:
            self.problem(key, f"must hold at least one of {_listed(choices)}")
        for index, item in enumerate(found):
            if item not in choices:
                self.problem(f"{key}[{index}]", f"must be {_listed(choices)}, not {shown(item)}")
        return tuple(item for item in found if item in choices)

    def flag(self, key: str) -> bool:
        """Return a truth value; one that isn't there is false."""
        return bool(self._read(key, lambda value: isinstance(value, bool), "must be true or false"))

    @overload
    def integer(self, key: str, *, at_least: int) -> int | None: ...
    @overload
    def integer(self, key: str, *, at_least: int, default: int) -> int: ...
    def integer(self, key: str, *, at_least: int, default: int | None = None) -> int | None:
        """Return a whole number, or `default` where there is none."""
        found = self._read(
            key,
            lambda value: type(value) is int and at_least <= value <= MOST,
            f"must be a whole number from {at_least} to 2^53-1",
        )
        return default if found is None else found

    def number(self, key: str, *, at_least: int, at_most: int = MOST, default: float) -> float:
        """Return a number, or `default` where there is none."""
        most = "2^53-1" if at_most == MOST else at_most
        found = self._read(
            key,
            lambda value: type(value) in {int, float} and at_least <= value <= at_most,
            f"must be a number from {at_least} to {most}",
        )
        return default if found is None else float(found)

    def object(self, key: str, read: "Callable[[Fields], T]") -> T | None:
        """Return what `read` makes of the object at `key`, or `None` where there is none."""
        found = self._read(key, _is_object, "must be a table")
        return None if found is None else read(self._inner(key, found))

    def objects(self, key: str, read: "Callable[[Fields], T]") -> tuple[T, ...]:
        """Return what `read` makes of each object of the list at `key`."""
        results: list[T] = []
        for index, item in enumerate(self._list(key, ())):
            place = f"{key}[{index}]"
            if _is_object(item):
                results.append(read(self._inner(place, item)))
            else:
                self.problem(place, "must be a table")
        return tuple(results)

    def unique(self, key: str, ids: Sequence[str]) -> None:
        """Keep a problem for each id of the list at `key` that was there before."""
        for index, found in enumerate(ids):
            if found and found in ids[:index]:
                self.problem(f"{key}[{index}].id", f"{found!r} is there twice")

    def finish(self) -> None:
        """Keep a problem for each key that nobody asked for, with the nearest known one."""
        for key in self._value:
            if key not in self._asked:
                near = difflib.get_close_matches(str(key), self._asked, n=1, cutoff=0.5)
                meant = f"did you mean {near[0]!r}?" if near else f"known: {_listed(self._asked)}"
                self.problem(str(key), f"is not a key of this table; {meant}")

    def _refuse_nul(self, key: str, path: Any) -> None:  # noqa: ANN401  whatever was said
        if isinstance(path, str) and "\0" in path:
            self.problem(key, f"must be the name of a file, and none has a NUL in it: {path!r}")

    def _inner(self, key: str, value: Mapping[str, Any]) -> "Fields":
        return Fields(f"{self._place}.{key}" if self._place else key, value, self._problems)

    def _list(self, key: str, default: Sequence[Any]) -> Sequence[Any]:
        found = self._read(key, lambda value: isinstance(value, list), "must be a list")
        return default if found is None else found

    def _read(self, key: str, check: Callable[[Any], bool], what: str) -> Any:  # noqa: ANN401  a JSON value
        self._asked.append(key)
        if key not in self._value:
            return None
        found = self._value[key]
        if check(found):
            return found
        self.problem(key, f"{what}, not {shown(found)}")
        return None


def read_document(where: str, value: object, read: Callable[[Fields], T]) -> T:
    """Return what `read` makes of a whole document.

    Raises:
        ConfigError: With every problem that was kept.
    """
    problems: list[Problem] = []
    if not isinstance(value, Mapping):
        raise ConfigError(where=where, problems=[Problem("", "must be a table")])
    result = read(Fields("", value, problems))
    if problems:
        raise ConfigError(where=where, problems=problems)
    return result


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _listed(choices: Sequence[str]) -> str:
    *head, last = [repr(choice) for choice in choices]
    return f"{', '.join(head)} or {last}" if head else last
