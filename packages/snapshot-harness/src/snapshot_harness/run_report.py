"""What a whole run came to, gathered by the controlling process; light to import."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snapshot_harness.shard import Shard

VERSION = 1
SUITE = "suite.toml"
SCENARIO = "scenario.toml"
_SHOWN = 10


@dataclass(slots=True)
class RunReport:
    """The reports of all items, in the order in which they came."""

    mode: str
    shard: str | None = None
    lines: list[str] = field(default_factory=list)
    annotations: list[str] = field(default_factory=list)
    headers: dict[str, list[str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _scenarios: list[Any] = field(default_factory=list)
    _guards: list[str] = field(default_factory=list)
    _usages: list[tuple[int, int]] = field(default_factory=list)
    _recorded: int = 0

    def add(self, facts: Mapping[str, Any]) -> None:
        """Take in what one item came to."""
        self.annotations += facts["annotations"]
        self._guards += facts.get("guards", [])
        if "report" in facts:
            self._scenarios.append(facts["report"])
            self.lines.append(facts["line"])
        if facts.get("usage"):
            self._usages.append(facts["usage"])
            self._recorded += facts["report"]["outcome"] == "passed"

    def usage_line(self, seconds: float) -> str:
        """Return what recording came to; nothing where nothing was recorded."""
        if not self._usages:
            return ""
        calls = sum(calls for calls, _ in self._usages)
        tokens = sum(tokens for _, tokens in self._usages)
        recorded = "1 scenario" if self._recorded == 1 else f"{self._recorded} scenarios"
        failed = len(self._usages) - self._recorded
        lost = f", {failed} failed" if failed else ""
        called = "1 call" if calls == 1 else f"{calls} calls"
        return f"recorded {recorded}{lost}: {called}, {tokens} tokens, {seconds:.1f} s"

    def write(self, path: Path) -> None:
        """Write everything as JSON; its directory is there."""
        whole = {
            "version": VERSION,
            "mode": self.mode,
            "shard": self.shard,
            "scenarios": sorted(self._scenarios, key=lambda report: report["scenario"]),
            "headers": self.headers,
            "guards": self._guards,
            "errors": self.errors,
        }
        path.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")


def shown_path(path: Path) -> Path:
    """Return a path as one would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def node_of(argument: str, start: Path) -> str:
    """Return what names a scenario's test, where pytest was given a place in its directory."""
    directory = _below_suite(start / argument)
    if directory is None or not (directory / SCENARIO).is_file():
        return argument
    return f"{directory.parent / SUITE}::{directory.name}"


def stray_lines(arguments: Sequence[str], start: Path) -> list[str]:
    """Return what to say of arguments from which nothing would be collected, without a word."""
    found = {argument: _below_suite(start / argument) for argument in arguments}
    return [
        f"{argument}: {shown_path(directory)} is a directory of a suite without {SCENARIO}\n"
        f"  hint: name a scenario's directory, or {shown_path(directory.parent / SUITE)} itself"
        for argument, directory in found.items()
        if directory is not None and not (directory / SCENARIO).is_file()
    ]


def _below_suite(argument: Path) -> Path | None:
    """Return the directory beside a suite.toml that is an existing path, or holds it."""
    path = Path(os.path.abspath(argument))  # noqa: PTH100  links stay as they are
    if not path.exists() or path.name == SUITE:
        return None
    for one in (path, *path.parents):
        if (one / SUITE).is_file():
            return None
        if (one.parent / SUITE).is_file():
            return one if one.is_dir() else None
    return None


def suites_below(arguments: Sequence[str], start: Path, ignored: Sequence[str]) -> list[Path]:
    """Return the suite.toml files that pytest collects, however deep; `ignored` as it does."""
    found: dict[Path, None] = {}
    for argument in arguments:
        path = start / argument.partition("::")[0]
        if path.name == SUITE and path.is_file():
            found[path.resolve()] = None
        for directory, names, files in os.walk(path):
            if SUITE in files:
                found[Path(directory, SUITE).resolve()] = None
                names.clear()
            names[:] = [
                name
                for name in sorted(names)
                if not any(fnmatch(name, pattern) for pattern in ignored)
                and not Path(directory, name, "pyvenv.cfg").is_file()
            ]
    return list(found)


def suite_lines(suites: Sequence[Path], shard: "Shard") -> list[str]:
    """Return what a run leaves out of each suite: other shards, scenarios of other platforms."""
    lines = []
    for path in suites:
        from snapshot_harness.exceptions import ScenarioError  # noqa: PLC0415  only with a suite
        from snapshot_harness.suite import read_suite  # noqa: PLC0415

        try:
            scenarios = read_suite(path).scenarios
        except ScenarioError:
            continue  # collection tells it
        taken = shard.of(scenarios)
        if len(taken) < len(scenarios):
            part = f"{len(taken)} of the {len(scenarios)} scenarios"
            lines.append(f"snapshots: shard {shard} has {part} of {shown_path(path)}")
        elsewhere = [one.name for one in taken if not one.runs_here]
        if elsewhere:
            names = ", ".join(elsewhere)
            lines.append(f"snapshots: {len(elsewhere)} for other platforms, not run: {names}")
    return lines


def unknown_lines(keyword: str, suites: Sequence[Path]) -> list[str]:
    """Return what to say where `-k` chose nothing: the nearest name, or what there is."""
    from difflib import get_close_matches  # noqa: PLC0415  only after a failure

    from snapshot_harness.suite import read_suite  # noqa: PLC0415  as above

    names = sorted(one.name for path in suites for one in read_suite(path).scenarios)
    if not names:
        return []
    near = get_close_matches(keyword, names, n=1)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    known = f"known: {', '.join(names[:_SHOWN])}{more}"
    hint = f"did you mean {near[0]!r}?" if near else known
    return [f"-k {keyword!r} fits no scenario", f"  hint: {hint}"]
