"""`{{fromRequest:<pattern>}}` in an entry: text that only the live request knows.

Looks at the clock, to stop a pattern that takes too long, and at nothing else.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from llm_replay.derive import ReplayEntry
from llm_replay.exceptions import PatternTimeoutError, PlaceholderError
from llm_replay.values import map_strings, shown, strings

TIMEOUT_S = 1.0
"""How long all matching of one pattern may take."""

LONGEST, LARGEST = 1000, 2000
"""How many characters a pattern may have, and how many elements when its repeats are written out.

Nothing stops the package regex while it compiles, and it does write them out.
"""

_MARKER = "{{fromRequest:"
_EXCERPT = 200
_ELEMENTS = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<opens>\()|(?P<closes>\))"
    r"|\{(?P<least>[0-9]+)(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def has_placeholder(entry: ReplayEntry) -> bool:
    """Say whether an entry can't be served without looking at the request."""
    return any(_MARKER in text for text in strings(entry))


def resolve_scripted_entry(
    entry: ReplayEntry,
    request: Any,  # noqa: ANN401  whatever the runtime calls a request
    *,
    outside: Callable[[str], str] = str,
) -> ReplayEntry:
    """Return the entry with every placeholder filled in from the messages of the request.

    `outside` is applied to the text around placeholders. Patterns and what they find are
    not looked at again. Blocks for up to a second per pattern; the interpreter goes on, so
    call it in a thread where others should.

    Raises:
        PlaceholderError: A pattern finds nothing, is no pattern, or has no end.
        PatternTimeoutError: A pattern takes longer than a second.
    """
    corpus: list[str] = []

    def fill(text: str) -> str:
        if _MARKER not in text:
            return outside(text)
        if not corpus:
            corpus.append("\n".join(_leaves(list(request.messages))))
        return "".join(
            _find(part, corpus[0]) if is_pattern else outside(part)
            for is_pattern, part in _parts(text)
        )

    resolved: ReplayEntry = map_strings(entry, fill)
    return resolved


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Cut a text into placeholders' patterns (`True`) and what stands around them.

    A placeholder ends with the last two braces of the first run of closing ones, so that a
    pattern may end in `{4}`.
    """
    done = 0
    while (start := text.find(_MARKER, done)) >= 0:
        yield False, text[done:start]
        start += len(_MARKER)
        end = text.find("}}", start)
        if end < 0:
            raise PlaceholderError(
                what=f"a fromRequest placeholder never ends, in {shown(text)}",
                hint="close it with two braces",
            )
        while text.startswith("}", end + 2):
            end += 1
        yield True, text[start:end]
        done = end + 2
    yield False, text[done:]


def _find(pattern: str, corpus: str) -> str:
    """Return what a pattern finds last: its group 1 if that took part, else the whole match."""
    match = _last_match(pattern, corpus)
    if match is None:
        raise PlaceholderError(
            what=f"the fromRequest pattern {pattern!r} finds nothing in the request",
            why=f"It was searched in every string of the messages: {_excerpt(corpus)}",
            hint="the request is not what the pattern was written for; look at its last message",
        )
    group: str | None = match.group(1) if match.re.groups else None
    return str(match.group()) if group is None else group


def size_of(pattern: str) -> int:
    """Return how many elements a pattern has when what it repeats at least is written out."""
    sizes, last = [0], 0
    for element in _ELEMENTS.finditer(pattern):
        if element["opens"]:
            sizes.append(0)
        elif element["least"]:
            more = last * (max(1, min(int(element["least"][:9]), LARGEST + 1)) - 1)
            sizes[-1] += more
            last += more
        elif element["closes"] and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def _last_match(pattern: str, corpus: str) -> Any:  # noqa: ANN401  the package regex has no types
    if len(pattern) > LONGEST or size_of(pattern) > LARGEST:
        raise PlaceholderError(
            what=f"the fromRequest pattern {shown(pattern)} is too large",
            why=f"It may have {LONGEST} characters, and repeat at least {LARGEST} elements.",
            hint="say what stands around the text that you mean, not the text itself",
        )
    # Only where a placeholder is there: it takes 20 ms to import.
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  see above; it has no types

    last = None
    deadline = time.monotonic() + TIMEOUT_S
    try:
        for match in regex.finditer(pattern, corpus, timeout=TIMEOUT_S, concurrent=True):
            last = match
            if time.monotonic() > deadline:  # the time-out of regex is for each match alone
                break
        else:
            return last
    except TimeoutError:
        pass
    except (regex.error, ValueError, RecursionError, OverflowError, MemoryError) as error:
        why = str(error) or "it needs too much memory"
        raise PlaceholderError(
            what=f"the fromRequest pattern {pattern!r} is not a regular expression: {why}",
            hint="patterns are Python's",
        ) from None
    raise PatternTimeoutError(
        what=f"the fromRequest pattern {pattern!r} takes longer than {TIMEOUT_S:g} s",
        hint="repeat nothing that repeats itself, or anchor the pattern to a word",
    )


def _leaves(value: Any) -> Iterator[str]:  # noqa: ANN401  JSON
    """Yield every string of the messages as the reference does: keys like integers first."""
    return strings(value, order=_reference_order)


def _reference_order(item: dict[str, Any]) -> list[Any]:
    numbered = [key for key in item if _is_index(key)]
    rest = [key for key in item if not _is_index(key)]
    return [item[key] for key in (*sorted(numbered, key=int), *rest)]


def _is_index(key: str) -> bool:
    return _INDEX.fullmatch(key) is not None and int(key) < 2**32 - 1


def _excerpt(corpus: str) -> str:
    """Show the end of a long text: the newest message stands there."""
    return repr(corpus if len(corpus) <= _EXCERPT else f"…{corpus[-_EXCERPT:]}")
