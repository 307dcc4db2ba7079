"""What no file of a scenario may hold, whatever it is: credentials, conflict markers, bulk."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from llm_replay.jsonl import find_lossy
from snapshot_harness.credentials import find_credentials
from snapshot_harness.exceptions import Problem

_CONFLICT = re.compile(rb"^(?:<{7}|>{7}|\|{7}) ?.*$", re.MULTILINE)
_JSON_LINES = ".jsonl"
_JSON = ".json"


def text_problems(directory: Path, max_bytes: int, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what is wrong with any file below a scenario's directory."""
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if len(data) > max_bytes:
            yield Problem(
                path=path,
                what=f"{len(data)} bytes, and the suite allows {max_bytes}",
                why="Large fixtures are not reviewed.",
                hint="make the scenario smaller, or raise `max_fixture_bytes` in suite.toml",
            )
        yield from _conflicts(path, data)
        yield from _credentials(path, data, environ)
        if path.parent == directory:
            yield from _lossy(path, data)


def shared_problems(directory: Path, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield which files beside suite.toml hold a credential; a hidden one is not committed."""
    for path in sorted(directory.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            yield from _credentials(path, path.read_bytes(), environ)


def _conflicts(path: Path, data: bytes) -> Iterator[Problem]:
    match = _CONFLICT.search(data)
    if match is not None:
        yield Problem(
            path=path,
            line=_line(data, match.start()),
            what="a merge-conflict marker",
            hint="resolve the conflict; a log or transcript is best refreshed",
        )


def _credentials(path: Path, data: bytes, environ: Mapping[str, str]) -> Iterator[Problem]:
    for found in find_credentials(data.decode(errors="replace"), environ):
        yield Problem(
            path=path,
            line=found.line,
            what=f"column {found.column}: {found.what}",
            why="Whoever can read the repository can use it.",
            hint="revoke it, and leave it out; in record mode `.env` may hold keys",
        )


def _lossy(path: Path, data: bytes) -> Iterator[Problem]:
    """Yield what readers of JSON take differently: duplicate keys, and very large integers."""
    if path.suffix == _JSON_LINES:
        lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1)]
    elif path.suffix == _JSON:
        lines = [(1, data)]
    else:
        return
    for number, line in lines:
        try:
            found = find_lossy(line) if line.strip() else []
        except (ValueError, RecursionError):
            continue  # told by whoever reads the file
        for what in found:
            yield Problem(
                path=path,
                line=number if path.suffix == _JSON_LINES else None,
                what=what,
                why="Readers of JSON differ in what they make of it.",
                hint="correct the line by hand, or record the scenario again",
            )


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1
