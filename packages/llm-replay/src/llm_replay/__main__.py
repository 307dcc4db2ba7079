"""The `llm-replay` command: look at session logs, check them, rewrite them."""

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llm_replay.check import problems_of
from llm_replay.exceptions import ReplayError
from llm_replay.inventory import inventory_of
from llm_replay.repack import repacked, replace_file
from llm_replay.script import unreadable
from llm_replay.session_log import read_session_log
from llm_replay.show import render, summary_of

_EXAMPLES = {
    "show": """\
  llm-replay show scenarios/fix-typo            what the model said, call by call
  llm-replay show session.jsonl --json          the same for a program
""",
    "check": """\
  llm-replay check scenarios/*/                 can these be replayed? every problem
""",
    "pack": """\
  llm-replay pack session.jsonl                 rewrite with packed rows
  llm-replay pack --check scenarios/fix-typo    only say whether that would change anything
  llm-replay pack --layout plain session.jsonl  rewrite with a row for each delta
""",
}
_EPILOG = """\
examples:
{examples}
A PATH is a session log, or a directory with session.jsonl, session.1.jsonl, …
Exit status: 0 fine, 1 a problem was found, 2 the command line makes no sense.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal can't write is escaped
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        status = run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="llm-replay",
        description=__doc__,
        epilog=_EPILOG.format(examples="".join(_EXAMPLES.values())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, told in (
        ("show", _show, "tell what is in a log, call by call"),
        ("check", _check, "tell everything that keeps a log from being replayed"),
        ("pack", _pack, "rewrite a log in canonical layout, atomically"),
    ):
        command = commands.add_parser(
            name,
            help=told,
            description=f"{told.capitalize()}.",
            epilog=_EPILOG.format(examples=_EXAMPLES[name]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        command.set_defaults(run=run)
        if run is _show:
            command.add_argument("--json", action="store_true", help="a JSON list of sessions")
        if run is _pack:
            command.add_argument(
                "--check", action="store_true", help="write nothing; 1 if it would"
            )
            command.add_argument(
                "--layout",
                choices=("packed", "plain"),
                default="packed",
                help="one row for a run of deltas (default), or one for each",
            )
    return parser


def _show(options: argparse.Namespace) -> int:
    summaries: list[dict[str, Any]] = []

    def show(log: Path, index: int) -> int:
        read = read_session_log(_read(log), name=os.fspath(log))
        summaries.append(summary_of(read, primary=index == 0))
        return 0

    status = _for_each(options.paths, show)
    if options.json:
        print(json.dumps(summaries, indent=2))
    elif summaries:
        print("\n\n".join(map(render, summaries)))
    return status


def _check(options: argparse.Namespace) -> int:
    status = 0
    for path in options.paths:
        try:
            problems = problems_of(inventory_of(path))
        except ReplayError as error:
            problems = [str(error)]
        for problem in problems:
            print(problem)
            status = 1
        if not problems:
            print(f"{path}: fine")
    return status


def _pack(options: argparse.Namespace) -> int:
    def pack(log: Path, _index: int) -> int:
        before = _read(log)
        after = repacked(before, os.fspath(log), layout=options.layout)
        if after == before:
            print(f"{log}: is in canonical layout")
        elif options.check:
            print(f"{log}: is not in canonical layout\n  hint: llm-replay pack {log}")
            return 1
        else:
            replace_file(log, after)
            print(f"{log}: {len(before)} bytes, now {len(after)}")
        return 0

    return _for_each(options.paths, pack)


def _for_each(paths: Sequence[Path], do: Callable[[Path, int], int]) -> int:
    """Do something with every log, told its number; what is wrong with one keeps none back."""
    status = 0
    for path in paths:
        try:
            logs = inventory_of(path).logs
        except ReplayError as error:
            print(error, file=sys.stderr)
            logs, status = [], 1
        for index, log in enumerate(logs):
            try:
                status |= do(log, index)
            except ReplayError as error:
                print(error, file=sys.stderr)
                status = 1
    return status


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(os.fspath(path), error) from None


if __name__ == "__main__":
    sys.exit(main())
