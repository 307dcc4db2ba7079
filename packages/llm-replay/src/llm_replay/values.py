"""Walking, copying, comparing and quoting any JSON value, however deeply it is nested. No I/O."""

import copy
import reprlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

_ATOMS = (str, int, float, bool, type(None))


def map_strings(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401  JSON
    """Return a copy with every string value changed; keys are left alone."""
    return _rebuilt(value, lambda item: change(item) if type(item) is str else item)


def copied(value: Any) -> Any:  # noqa: ANN401  JSON
    """Return a copy that shares nothing that can be changed; what is no JSON is copied too."""
    return _rebuilt(value, lambda item: item if type(item) in _ATOMS else copy.deepcopy(item))


def same(one: Any, other: Any) -> bool:  # noqa: ANN401  JSON
    """Say whether two values are equal."""
    todo = [(one, other)]
    while todo:
        left, right = todo.pop()
        if type(left) is dict and type(right) is dict:
            if left.keys() != right.keys():
                return False
            todo.extend((left[key], right[key]) for key in left)
        elif type(left) is list and type(right) is list:
            if len(left) != len(right):
                return False
            todo.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True


def strings(
    value: Any,  # noqa: ANN401  JSON
    *,
    order: Callable[[dict[str, Any]], Collection[Any]] = dict.values,
) -> Iterator[str]:
    """Yield every string value, depth first; `order` returns the values of an object."""
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is str:
            yield item
        elif type(item) is dict:
            todo.extend(reversed(list(order(item))))
        elif type(item) is list:
            todo.extend(reversed(item))


def nests_deeper(value: Any, levels: int) -> bool:  # noqa: ANN401  JSON
    """Say whether arrays and objects lie in one another more than `levels` deep."""
    level = [value] if type(value) in (dict, list) else []
    while level and levels:
        levels -= 1
        members = (item.values() if type(item) is dict else item for item in level)
        level = [inner for some in members for inner in some if type(inner) in (dict, list)]
    return bool(level)


def shown(value: object) -> str:
    """Quote a value for a person: of what is long or nested deeply, the beginning."""
    return _QUOTES.repr(value)


class _Quotes(reprlib.Repr):
    """`repr` that ends: it is for errors, and must never be one."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_int(self, x: int, level: int) -> str:
        """Quote an integer, also one that is longer than Python likes to write."""
        return super().repr_int(x, level) if abs(x) < 10**self.maxlong else "a very long integer"


_QUOTES = _Quotes()


def _rebuilt(value: Any, leaf: Callable[[Any], Any]) -> Any:  # noqa: ANN401  JSON
    """Return a copy with `leaf` applied to all that is neither an object nor an array."""
    holder: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(holder, 0)]
    while todo:  # a stack of our own: JSON nests deeper than Python calls
        parent, key = todo.pop()
        item = parent[key]
        if type(item) is dict:
            parent[key] = dict(item)
            todo.extend((parent[key], name) for name in item)
        elif type(item) is list:
            parent[key] = list(item)
            todo.extend((parent[key], place) for place in range(len(item)))
        else:
            parent[key] = leaf(item)
    return holder[0]
