"""Walking any JSON value, however deeply it is nested. No I/O."""

from collections.abc import Callable, Collection, Iterator
from typing import Any


def map_strings(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401  JSON
    """Return a copy with every string value changed; keys are left alone."""
    holder: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(holder, 0)]
    while todo:  # a stack of our own: JSON nests deeper than Python calls
        parent, key = todo.pop()
        item = parent[key]
        if type(item) is str:
            parent[key] = change(item)
        elif type(item) is dict:
            parent[key] = dict(item)
            todo.extend((parent[key], name) for name in item)
        elif type(item) is list:
            parent[key] = list(item)
            todo.extend((parent[key], place) for place in range(len(item)))
    return holder[0]


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
