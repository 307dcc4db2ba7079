"""The command line: `snapshot-harness review | new | init | smoke | schemas`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from snapshot_harness import review, scaffold, schemas, smoke
from snapshot_harness.exceptions import HarnessError
from snapshot_harness.watchdog import WATCHDOG

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, do what it says, return the exit status."""
    options = _parser().parse_args(argv)
    run: Command = options.run
    try:
        return run(options)
    except HarnessError as error:
        print(f"snapshot-harness: {error}", file=sys.stderr)
        return 2
    finally:
        WATCHDOG.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="snapshot-harness", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("review", help="take over, or throw away, what failing runs left")
    review.add_arguments(one)
    one.set_defaults(run=review.run_review)
    one = commands.add_parser("new", help="scaffold a scenario")
    scaffold.add_new_arguments(one)
    one.set_defaults(run=scaffold.run_new)
    one = commands.add_parser("init", help="make a suite for your own agent")
    scaffold.add_init_arguments(one)
    one.set_defaults(run=scaffold.run_init)
    one = commands.add_parser("smoke", help="send one live prompt; nothing is written")
    smoke.add_arguments(one)
    one.set_defaults(run=smoke.run_smoke)
    one = commands.add_parser("schemas", help="write the JSON Schemas, for editors")
    one.add_argument("folder", nargs="?", type=Path, default=schemas.FOLDER)
    one.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
    one.set_defaults(run=_run_schemas)
    return parser


def _run_schemas(options: argparse.Namespace) -> int:
    if options.check:
        old = schemas.stale(options.folder)
        for path in old:
            print(f"{path}: not what the models say; run `snapshot-harness schemas`")
        return 1 if old else 0
    for path in schemas.write_schemas(options.folder):
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
