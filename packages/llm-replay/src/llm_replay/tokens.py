"""Tokens in model rows: the run's directories and literal braces, both ways. No I/O.

A model row is input, so nothing else in it is changed, and serving puts back
exactly what was there. Deltas count as the joined text of their block: a
directory's name may have been cut anywhere by the stream.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

from llm_replay.chunks import DELTA_FIELDS
from llm_replay.exceptions import UnresolvedRootError
from llm_replay.values import map_strings, strings

_VARIABLES = {
    "cwd": "PWD",
    "home": "HOME",
    "tmp": "TMPDIR",
    "sessions": "DSH_SNAPSHOT_SESSIONS_ROOT",
    "spill": "DSH_SNAPSHOT_SPILL_ROOT",
    "run": "DSH_SNAPSHOT_RUN",
}
_BELOW_RUN = r"/(?:cwd|home|tmp|sessions|spill)"
_ROOT = rf"\{{\{{(?:{'|'.join(_VARIABLES)})\}}\}}"
_TOKEN = re.compile(rf"\{{\{{(lit|{'|'.join(_VARIABLES)})\}}\}}")
# In order: a token; a brace that happens to stand before a root; two braces that are neither.
_BRACES = re.compile(rf"({_TOKEN.pattern})|\{{(?={_ROOT})|(\{{\{{)")
_RUN_TOUCHES = re.compile(rf"\{{\{{run\}}\}}(?={_ROOT}|{_BELOW_RUN})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """The directories of a run, resolved; `None` for one that is not known."""

    cwd: str | None = None
    home: str | None = None
    tmp: str | None = None
    sessions: str | None = None
    spill: str | None = None
    run: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], cwd: str) -> "Roots":
        """Return the directories as a process under test is told of them."""
        told = {
            name: environ[variable].rstrip("/") or "/"
            for name, variable in _VARIABLES.items()
            if environ.get(variable)
        }
        return cls(**{**told, "cwd": cwd})

    def served(self) -> dict[str, str]:
        """Return what is served for each token that can be."""
        values = {f"{{{{{name}}}}}": value for name, value in self._named() if value is not None}
        return {"{{lit}}": "{{", **values}

    def value_of(self, token: str) -> str:
        """Return what is served for one token.

        Raises:
            UnresolvedRootError: This process doesn't know that directory.
        """
        value = self.served().get(token)
        if value is None:
            raise UnresolvedRootError(token=token, variable=_VARIABLES[token.strip("{}")])
        return value

    def _named(self) -> Iterator[tuple[str, str | None]]:
        return ((name, getattr(self, name)) for name in _VARIABLES)


def tokenize_roots(text: str, roots: Roots) -> str:
    """Put tokens in place of the run's directories, whatever stands around them."""
    pattern, tokens = _recognizer(roots, braces=False)
    return pattern.sub(lambda match: tokens[match.group()], text)


def normalize_chunks(chunks: Iterable[Any], roots: Roots) -> list[Any]:
    """Put tokens in place of directories and literal braces in the chunks of one call.

    A token stands whole in the delta in which its value began; the rest of the value is
    cut from the deltas after it, which may become empty but stay.
    """
    return _change_chunks(chunks, lambda pieces: _normalize_pieces(pieces, roots))


def serve_chunks(chunks: Iterable[Any], roots: Roots) -> list[Any]:
    """Put back what the tokens in the chunks of one call stand for.

    Raises:
        UnresolvedRootError: A token stands for a directory this process doesn't know.
    """
    return _change_chunks(chunks, lambda pieces: [serve_text(piece, roots) for piece in pieces])


def serve_text(text: str, roots: Roots) -> str:
    """Put back what the tokens in one text stand for; what was put back is not looked at again.

    Raises:
        UnresolvedRootError: A token stands for a directory this process doesn't know.
    """
    return _TOKEN.sub(lambda match: roots.value_of(match.group()), text) if "{{" in text else text


def normalize_value(value: Any, roots: Roots) -> Any:  # noqa: ANN401  JSON
    """Put tokens in place of directories and literal braces in every string of a value."""
    return map_strings(value, lambda text: _normalize_pieces([text], roots)[0])


def serve_value(value: Any, roots: Roots) -> Any:  # noqa: ANN401  JSON
    """Put back what the tokens in every string of a value stand for.

    Raises:
        UnresolvedRootError: A token stands for a directory this process doesn't know.
    """
    return map_strings(value, lambda text: serve_text(text, roots))


def check_tokens(chunks: Sequence[Any]) -> list[tuple[int, str]]:
    """Return what the chunks of a call can't hold if normalizing made them.

    Each problem comes with the place of its chunk.
    """
    problems: list[tuple[int, str]] = []
    for places, pieces in _blocks(chunks):
        starts = list(accumulate(map(len, pieces), initial=0))
        for position, what in _text_problems("".join(pieces), starts):
            piece = max(k for k, start in enumerate(starts[:-1]) if start <= position)
            problems.append((places[piece], what))
    return sorted(problems)


def check_value(value: Any) -> list[str]:  # noqa: ANN401  JSON
    """Return what the strings of a value can't hold if normalizing made them."""
    return [what for text in strings(value) for _, what in _text_problems(text, [0, len(text)])]


@lru_cache(maxsize=32)
def _recognizer(roots: Roots, *, braces: bool) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern for what becomes a token, and the token of each."""
    tokens: dict[str, str] = {}
    for token, value in roots.served().items():
        if value != "/":
            tokens.setdefault(value, token)
    if not braces:
        del tokens["{{"]
    # Longest first: the run's directory contains the others.
    spellings = {value: re.escape(value) for value in sorted(tokens, key=len, reverse=True)}
    if roots.run in spellings:
        # `{{run}}` and what follows would be read as another directory when served elsewhere.
        others = "|".join(text for value, text in spellings.items() if value != "{{")
        spellings[roots.run] += rf"(?!{others}|{_BELOW_RUN})"
    return re.compile("|".join(spellings.values()) or "(?!)"), tokens


def _normalize_pieces(pieces: Sequence[str], roots: Roots) -> list[str]:
    """Put tokens into a text that is cut into pieces; it stays cut where it was."""
    pattern, tokens = _recognizer(roots, braces=True)
    joined = "".join(pieces)
    matches = list(pattern.finditer(joined))
    matches.reverse()
    changed = []
    done = 0
    for end in accumulate(map(len, pieces)):
        parts = []
        while matches and matches[-1].start() < end:
            match = matches.pop()
            parts += [joined[done : match.start()], tokens[match.group()]]
            done = match.end()
        parts.append(joined[done:end])
        done = max(done, end)
        changed.append("".join(parts))
    return changed


def _text_problems(joined: str, starts: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield what a text, cut at `starts`, can't hold if normalizing made it."""
    for match in _BRACES.finditer(joined):
        token, _, bad = match.groups()
        if bad:
            yield match.start(), f"'{{{{' begins no token that is served, in {_near(joined, match)}"
        elif token and any(match.start() < start < match.end() for start in starts):
            yield match.start(), f"the token {token} is cut by the end of a delta"
    for match in _RUN_TOUCHES.finditer(joined):
        what = "'{{run}}' stands directly before what would make it another directory"
        yield match.start(), f"{what}, in {_near(joined, match)}"


def _near(joined: str, match: re.Match[str]) -> str:
    """Quote the surroundings of a match."""
    return repr(joined[max(0, match.start() - 10) : match.end() + 20])


def _change_chunks(
    chunks: Iterable[Any], change: Callable[[Sequence[str]], Sequence[str]]
) -> list[Any]:
    """Return the chunks with every text changed, those of deltas as the text of their block."""
    changed = []
    blocks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for chunk in chunks:
        field = _delta_field(chunk)
        if field is None:
            changed.append(map_strings(chunk, lambda text: change([text])[0]))
            continue
        rest = {key: value for key, value in chunk.items() if key != field}
        copy = {**chunk, **map_strings(rest, lambda text: change([text])[0])}
        blocks.setdefault(_block_key(chunk), []).append(copy)
        changed.append(copy)
    for (kind, _), deltas in blocks.items():
        field = DELTA_FIELDS[kind]
        pieces = change([delta[field] for delta in deltas])
        for delta, piece in zip(deltas, pieces, strict=True):
            delta[field] = piece
    return changed


def _blocks(chunks: Iterable[Any]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield every text of a call: places of the chunks it is cut into, and the pieces."""
    blocks: dict[tuple[str, str], tuple[list[int], list[str]]] = {}
    for place, chunk in enumerate(chunks):
        field = _delta_field(chunk)
        if field is None:
            rest = chunk
        else:
            rest = {key: value for key, value in chunk.items() if key != field}
            block = blocks.setdefault(_block_key(chunk), ([], []))
            block[0].append(place)
            block[1].append(chunk[field])
        yield from (([place], [text]) for text in strings(rest))
    yield from blocks.values()


def _block_key(delta: dict[str, Any]) -> tuple[str, str]:
    """Name the block of a call that a delta belongs to."""
    index = delta.get("index")
    return delta["type"], str(index) if type(index) in (int, str) else ""


def _delta_field(chunk: Any) -> str | None:  # noqa: ANN401  JSON
    """Return the field that holds a delta's piece of text; `None` for what is no delta."""
    kind = chunk.get("type") if type(chunk) is dict else None
    field = DELTA_FIELDS.get(kind) if type(kind) is str else None
    return field if field and type(chunk.get(field)) is str else None
