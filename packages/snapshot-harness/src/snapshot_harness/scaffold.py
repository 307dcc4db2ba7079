"""`snapshot-harness new` and `init`: a first scenario, and a first suite, that work at once."""

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from snapshot_harness.exceptions import HarnessError
from snapshot_harness.header_desk import find_pin
from snapshot_harness.modes import Mode
from snapshot_harness.report import failure_text
from snapshot_harness.run import Outcome, run_scenario
from snapshot_harness.suite import NAME, Scenario, Suite, read_suite

FIRST = "handshake"

_SUITE = """\
# How the agent under test is booted. Everything else about a scenario stands in its directory.
command = {command}

# Where the session log comes from: "session-jsonl", or "none" for an agent that keeps none.
log = "session-jsonl"
# Whether the agent's replay tells what it served: "required", or "optional".
verdict = "required"

# Passed on in record mode only, from the environment or from `.env` beside this file. A name that
# is not here is not passed on: keys = ["API_KEY", "BASE_URL"]
keys = []

# What record mode calls. Where `base_url_env` is set, it is called instead, and needs no key.
# [record]
# endpoint = "https://api.openai.com/v1"
# base_url_env = "BASE_URL"
"""

_SCENARIO = """\
why = {why}
origin = {origin}
"""

_IGNORED = ".snapshot/\n.env\n"


class ScaffoldError(HarnessError):
    """Nothing was written."""


def add_new_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `new` takes."""
    parser.add_argument("name", help="lower-case letters, digits and dashes")
    parser.add_argument(
        "--suite",
        type=Path,
        default=Path("scenarios"),
        help="suite.toml or its directory (default: %(default)s)",
    )
    parser.add_argument(
        "--authored",
        action="store_true",
        help="its model rows are written by hand, and some are there to begin with",
    )
    parser.add_argument(
        "--prompt", default="Hello.", help="what the user says (default: %(default)r)"
    )
    parser.add_argument("--why", default="", help="the behaviour it holds, in one sentence")


def run_new(options: argparse.Namespace) -> int:
    """Scaffold a scenario.

    Raises:
        ScaffoldError: The name is taken, or is none.
    """
    suite = options.suite if options.suite.name == "suite.toml" else options.suite / "suite.toml"
    read = read_suite(suite)
    name = str(options.name)
    directory = suite.parent / name
    if NAME.fullmatch(name) is None:
        raise ScaffoldError(
            f"{name!r} is no name for a scenario\n"
            "  hint: lower-case letters, digits and dashes, not a dash first"
        )
    if directory.exists():
        raise ScaffoldError(
            f"{directory} is there already\n  hint: choose another name, or remove the directory"
        )
    why = options.why or f"The agent answers {options.prompt!r}; say here which behaviour it holds."
    steps = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": options.prompt}]
    origin = "authored" if options.authored else "recorded"
    files = _scenario_files(why, origin, steps)
    if find_pin(read, read.file.header_classes[0]) is None:
        files["scenario.toml"] += "pins_header = true\n"
    if options.authored:
        files["session.jsonl"] = _session(_answer("Hello."))
    _write(directory, files)
    mode = f"--snapshot-mode=record --snapshot-record={name}"
    if options.authored:
        mode = f"--snapshot-mode=refresh -k {name}"
    _say(f"wrote {directory}; next: pytest {_typed(suite.parent)} {mode}")
    return 0


def add_init_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `init` takes."""
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("scenarios"),
        help="where the suite is made (default: %(default)s)",
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the agent's, after --")


def run_init(options: argparse.Namespace) -> int:
    """Make a suite for an agent, with a first scenario, and replay it.

    Raises:
        ScaffoldError: There is a suite already.
    """
    directory: Path = options.directory
    if (directory / "suite.toml").exists():
        raise ScaffoldError(
            f"{directory / 'suite.toml'} is there already\n"
            "  hint: snapshot-harness new adds a scenario to it; --directory makes another suite"
        )
    command = _portable(options.command, directory)
    _write(directory, {"suite.toml": _SUITE.format(command=_toml(command)), ".gitignore": _IGNORED})
    suite = read_suite(directory / "suite.toml")
    for steps in ([{"op": "initialize"}, {"op": "newSession"}], [{"op": "initialize"}]):
        outcome = _first(suite, steps)
        if outcome.report.outcome == "passed":
            done = " and makes a session" if len(steps) > 1 else ""
            _say(f"wrote {directory}: your agent shakes hands{done}, and does so again in replay")
            _say(f"next: snapshot-harness new NAME --suite {_typed(directory)}")
            return 0
    sys.stderr.write(f"{failure_text(outcome.report)}\n")
    then = f"pytest {_typed(directory)} --snapshot-mode=refresh"
    sys.stderr.write(f"wrote {directory}; correct what is said above, then: {then}\n")
    return 1


def _portable(command: Sequence[str], directory: Path) -> list[str]:
    """Return a command that works from any checkout: the agent does not run where we are."""
    parts = [_below(directory, Path(part)) if _is_ours(part) else part for part in command]
    if parts[0] in {"python", "python3", sys.executable}:
        parts[0] = "{python}"
    return parts


def _is_ours(part: str) -> bool:
    path = Path(part)
    is_elsewhere = path.is_absolute() and not path.is_relative_to(Path.cwd())
    return path.is_file() and not is_elsewhere


def _below(directory: Path, path: Path) -> str:
    """Return a path from the suite on, which stands where its links lead."""
    # A link to the agent itself stays one: some programs look at their own name.
    real = path.parent.resolve() / path.name
    return "{suite}/" + os.path.relpath(real, directory.resolve())


def _first(suite: Suite, steps: Sequence[Mapping[str, object]]) -> Outcome:
    """Write the first scenario, have its expectations written, and replay it."""
    directory = suite.directory / FIRST
    why = "The agent introduces itself, and nothing else is on its stdout."
    files = _scenario_files(why, "authored", steps)
    _write(directory, {**files, "session.jsonl": _session([])}, again=True)
    scenario = Scenario(directory)
    outcome = run_scenario(suite, scenario, Mode.REFRESH)
    if outcome.report.outcome != "passed":
        return outcome
    return run_scenario(suite, scenario, Mode.REPLAY)


def _scenario_files(why: str, origin: str, steps: Sequence[Mapping[str, object]]) -> dict[str, str]:
    lines = ",\n".join(f"    {json.dumps(step)}" for step in steps)
    return {
        "scenario.toml": _SCENARIO.format(why=_toml(why), origin=_toml(origin)),
        "input.json": f'{{\n  "steps": [\n{lines}\n  ]\n}}\n',
    }


def _session(rows: Sequence[Mapping[str, object]]) -> str:
    header = {"type": "session", "version": 1, "id": "{{session:1}}", "createdAt": 0}
    lines = [{**header, "lineage": "1", "tokens": 1}, *rows]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def _answer(text: str) -> list[Mapping[str, object]]:
    """Return the model rows of one answer, as an author would write them."""
    place = {"turn": 1, "step": 1}
    chunks = [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": text},
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": text}},
        {"type": "finish", "reason": {"kind": "stop"}},
    ]
    return [{"type": "assistant/chunk", "data": {**place, "chunk": chunk}} for chunk in chunks]


def _toml(value: object) -> str:
    """Return a string, or a list of them, as TOML: JSON's spelling, but for DEL."""
    return re.sub("\x7f", r"\\u007f", json.dumps(value, ensure_ascii=False))


def _write(directory: Path, files: Mapping[str, str], *, again: bool = False) -> None:
    try:
        coded = {name: text.encode() for name, text in files.items()}
    except UnicodeEncodeError:
        what = "an argument holds bytes that are no UTF-8, and the files are UTF-8"
        raise ScaffoldError(f"{what}\n  hint: spell it in UTF-8") from None
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in coded.items():
        path = directory / name
        if again or not path.exists():
            path.write_bytes(data)


def _typed(path: Path) -> str:
    return shlex.quote(str(path))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
