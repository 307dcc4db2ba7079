"""Guards: all that can be said about a suite's files without starting an agent."""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from snapshot_harness.atomic import COMMIT, NEW, pending
from snapshot_harness.credentials import secret_values
from snapshot_harness.exceptions import Problem, ScenarioError
from snapshot_harness.fixtures import (
    INPUT,
    OVERRIDE,
    SCENARIO,
    SESSION,
    SYSTEM,
    TOOLS,
    TRANSCRIPT,
    WORKSPACE,
    find_logs,
    log_name,
)
from snapshot_harness.guards_logs import log_problems
from snapshot_harness.guards_pins import pin_problems
from snapshot_harness.guards_text import shared_problems, text_problems
from snapshot_harness.steps import Script, read_script
from snapshot_harness.suite import Scenario, ScenarioFile, Suite


@dataclass(frozen=True, slots=True)
class _Read:
    """A scenario whose hand-written files could be read."""

    scenario: Scenario
    file: ScenarioFile
    script: Script | None


def run_guards(suite: Suite) -> list[Problem]:
    """Return every problem of the suite's directories, each with its file and remedy."""
    problems = list(_orphans(suite.directory))
    secrets = {name: value for value, name in secret_values(os.environ).items()}
    problems += shared_problems(suite.directory, secrets)
    read = []
    for scenario in suite.scenarios:
        problems += text_problems(scenario.directory, suite.file.max_fixture_bytes, secrets)
        try:
            file = scenario.file
        except ScenarioError as error:
            problems += error.problems
            continue
        script = _script(scenario, problems)
        read.append(_Read(scenario, file, script))
    for one in read:
        problems += _file_problems(suite, one)
        problems += log_problems(suite, one.scenario, one.file, one.script)
    problems += pin_problems(suite, [(one.scenario, one.file) for one in read])
    once = dict.fromkeys(problems)  # a pending write is seen by all who look
    return sorted(once, key=lambda problem: (str(problem.path), problem.line or 0))


def _script(scenario: Scenario, problems: list[Problem]) -> Script | None:
    path = scenario.directory / INPUT
    if not path.is_file():
        return None  # told with the other missing files
    try:
        return read_script(path)
    except ScenarioError as error:
        problems += error.problems
        return None


def _orphans(directory: Path) -> Iterator[Problem]:
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith((".", "__")) or not entry.is_dir():
            continue
        if not (entry / SCENARIO).is_file():
            yield Problem(
                path=entry,
                what=f"a directory without {SCENARIO}",
                why="Nothing runs it, so what it holds can't fail.",
                hint=f"add {SCENARIO}, or remove the directory",
            )


def _file_problems(suite: Suite, read: _Read) -> Iterator[Problem]:
    directory = read.scenario.directory
    left = pending(directory)
    if left is not None:
        yield left.problem
    required, allowed = _expected_names(suite, read.file)
    logs = {path.name for path in find_logs(directory)}
    allowed |= logs
    present = {entry.name for entry in directory.iterdir() if not _is_a_tools(entry.name)}
    for name in sorted(required - present):
        yield _missing(directory, name)
    for name in sorted(present - required - allowed):
        if left is None or not (name.endswith(NEW) or name == COMMIT):
            known = {*required, *allowed, log_name(len(logs))}
            yield _unexpected(directory / name, sorted(known))
    for name in sorted(present & (required | allowed)):
        yield from _kind(directory / name)
    yield from _numbering(directory)


def _kind(path: Path) -> Iterator[Problem]:
    wanted, is_it = (
        ("directory", path.is_dir()) if path.name == WORKSPACE else ("file", path.is_file())
    )
    if not is_it:
        hint = f"put a {wanted} in its place"
        yield Problem(path=path, what=f"it is no {wanted}, or leads to none", hint=hint)


def _is_a_tools(name: str) -> bool:
    """Tell whether a tool has left this beside our files: a cache, a desktop's notes."""
    return name.startswith(".") and not name.startswith(COMMIT)


def _expected_names(suite: Suite, file: ScenarioFile) -> tuple[set[str], set[str]]:
    required = {SCENARIO, INPUT, TRANSCRIPT}
    allowed = {WORKSPACE, SESSION}
    if suite.file.log != "none":
        required.add(SESSION)
    if file.overridden:
        required.add(OVERRIDE)
    if file.pins_header:
        required |= {SYSTEM, TOOLS}
    return required, allowed


def _missing(directory: Path, name: str) -> Problem:
    hints = {
        INPUT: "write what the client does",
        TRANSCRIPT: "refresh the scenario: refresh writes it",
        SESSION: "record the scenario, or write the file by hand",
        OVERRIDE: "write it, or say `overridden = false` in scenario.toml",
        SYSTEM: "refresh the scenario, or say `pins_header = false` in scenario.toml",
        TOOLS: "refresh the scenario, or say `pins_header = false` in scenario.toml",
    }
    return Problem(path=directory / name, what="the file is missing", hint=hints[name])


def _unexpected(path: Path, known: list[str]) -> Problem:
    hints = {
        OVERRIDE: "say `overridden = true` in scenario.toml, or remove the file",
        SYSTEM: "say `pins_header = true` in scenario.toml, or remove the file",
        TOOLS: "say `pins_header = true` in scenario.toml, or remove the file",
    }
    near = difflib.get_close_matches(path.name, known, n=1)
    hint = hints.get(path.name) or (f"did you mean {near[0]!r}?" if near else "remove it")
    return Problem(path=path, what="a scenario has no such file", hint=hint)


def _numbering(directory: Path) -> Iterator[Problem]:
    for number, path in enumerate(find_logs(directory)):
        if path.name != log_name(number):
            yield Problem(
                path=path,
                what=f"its number is out of order: {log_name(number)} is missing",
                why="Sessions are numbered without gaps, in order of lineage.",
                hint="rename the logs, or record the scenario again",
            )
            return
