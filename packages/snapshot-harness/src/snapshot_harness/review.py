"""`snapshot-harness review`: what failing runs left, taken over or thrown away one by one."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path

from snapshot_harness.causes import Cause, render
from snapshot_harness.exceptions import FixtureError
from snapshot_harness.kept import Kept, accept, find_kept, forget
from snapshot_harness.values import in_sight

_DIFF_LINES = 60
_KEYS = {"a": "accept", "r": "reject", "s": "skip", "d": "diff", "q": "quit"}
_QUESTION = "[a]ccept  [r]eject  [s]kip  [d]iff  [q]uit ? "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `review` takes."""
    parser.add_argument(
        "suite", nargs="?", type=Path, default=Path(), help="suite.toml or its directory"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--list", action="store_true", help="name what waits for review")
    only.add_argument("--accept", metavar="NAME", help="take over; a name or a glob")
    only.add_argument("--reject", metavar="NAME", help="throw away; a name or a glob")


def run_review(options: argparse.Namespace) -> int:
    """Do what `review` was asked for; return the exit status."""
    suite = _suite_directory(options.suite)
    if suite is None:
        _complain(f"no suite.toml in {options.suite}; name the directory that has one")
        return 2
    try:
        kept = find_kept(suite)
    except FixtureError as error:
        _complain(str(error))
        return 1
    if options.list:
        _say(_line(one) for one in kept)
        return 0
    name = options.accept or options.reject
    if name is None:
        return _walk(suite, kept)
    chosen = [one for one in kept if fnmatchcase(one.scenario, name)]
    if not chosen:
        _complain(f"nothing called {name!r} waits for review; see --list")
        return 1
    return max(_settle(suite, one, "accept" if options.accept else "reject") for one in chosen)


def _suite_directory(path: Path) -> Path | None:
    """Return the directory that holds suite.toml: the one named, or `scenarios` in it."""
    if path.is_file():
        return path.parent
    return next((one for one in (path, path / "scenarios") if (one / "suite.toml").is_file()), None)


def _walk(suite: Path, kept: Sequence[Kept]) -> int:
    if not kept:
        _say(["nothing waits for review"])
        return 0
    if not sys.stdin.isatty():
        _complain("review asks on a terminal; without one use --list, --accept or --reject")
        return 2
    status = 0
    for number, one in enumerate(kept, 1):
        _say([f"── {number} of {len(kept)}: {one.scenario}", *_causes_by_turn(one)])
        choice = _ask(suite, one)
        if choice == "quit":
            break
        if choice != "skip":
            status = max(status, _settle(suite, one, choice))
    return status


def _ask(suite: Path, kept: Kept) -> str:
    while True:
        try:
            answer = input(_QUESTION).strip().lower()
        except EOFError:
            return "quit"
        choice = _KEYS.get(answer[:1], "")
        if choice == "diff":
            _say(_diff(suite, kept))
        elif choice:
            return choice


def _settle(suite: Path, kept: Kept, choice: str) -> int:
    if choice == "reject":
        forget(suite, kept.scenario)
        _say([f"{kept.scenario}: rejected; the committed files stay"])
        return 0
    try:
        written = accept(suite, kept)
    except (FixtureError, OSError) as error:
        _complain(f"{kept.scenario}: not accepted\n{error}")
        return 1
    _say([f"{kept.scenario}: accepted, {', '.join(written) or 'nothing'} written"])
    return 0


def _line(kept: Kept) -> str:
    places = sum(1 + cause.folded for cause in kept.causes)
    first = render(kept.causes[:1]).split("\n")[0] if kept.causes else "no difference was kept"
    barred = " (can't be accepted)" if kept.refusals else ""
    return f"{kept.scenario}: {places} {'place' if places == 1 else 'places'}{barred}; {first}"


def _causes_by_turn(kept: Kept) -> list[str]:
    lines = [f"can't be accepted: {text}" for text in kept.refusals]
    groups: dict[int | None, list[Cause]] = {}
    for cause in kept.causes:
        groups.setdefault(cause.turn, []).append(cause)
    for turn, causes in groups.items():
        lines.append("before the first turn" if turn is None else f"turn {turn}")
        lines += [f"  {line}" for line in render(causes).split("\n")]
    return lines


def _diff(suite: Path, kept: Kept) -> list[str]:
    lines: list[str] = []
    for name in sorted(kept.base):
        old, new = suite / kept.scenario / name, kept.directory / name
        sides = [
            path.read_text("utf-8", errors="replace").split("\n") if path.is_file() else []
            for path in (old, new)
        ]
        lines += unified_diff(sides[0], sides[1], f"{name} (committed)", f"{name} (run)", n=0)
    cut = in_sight([line.rstrip("\n") for line in lines[:_DIFF_LINES]])
    left = len(lines) - _DIFF_LINES
    return [*cut, f"… and {left} more lines"] if left > 0 else cut


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(f"snapshot-harness review: {text}\n")
