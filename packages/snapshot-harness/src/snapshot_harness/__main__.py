"""The command line: `snapshot-harness review | new | init | smoke | schemas`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from snapshot_harness import review, scaffold, schemas, smoke
from snapshot_harness.exceptions import HarnessError
from snapshot_harness.watchdog import WATCHDOG

Command = Callable[[argparse.Namespace], int]

_ABOUT = """\
Scaffold, review and try the snapshot scenarios of an agent that speaks ACP.
To replay, refresh or record them, run pytest over the suite's directory.
"""

_EXAMPLES = """\
examples:
  snapshot-harness init -- node agent.mjs       a suite for your agent, and a first scenario
  snapshot-harness new fix-typo                 one more scenario, to be recorded
  pytest scenarios                              replay them all
  snapshot-harness review                       look at what the failing ones left

Exit status: 0 fine, 1 something failed, 2 it could not be done at all.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, do what it says, return the exit status."""
    options = _parser().parse_args(argv)
    run: Command = options.run
    try:
        status = run(options)
        sys.stdout.flush()
    except HarnessError as error:
        print(f"snapshot-harness: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever reads has seen enough; Python would complain of what is left to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as a shell says it of SIGPIPE
    except OSError as error:
        print(f"snapshot-harness: {_refused(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("snapshot-harness: interrupted", file=sys.stderr)
        return 130  # as a shell says it of SIGINT
    else:
        return status
    finally:
        WATCHDOG.close()


def _refused(error: OSError) -> str:
    """Tell what the system refused, and where."""
    where = f"{error.filename}: " if error.filename is not None else ""
    what = error.strerror or str(error)
    return f"{where}{what}\n  hint: see to the path, the disk or the permissions, and try again"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="snapshot-harness",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Command, told: str, example: str) -> argparse.ArgumentParser:
        about, epilog = (
            f"{told[0].upper()}{told[1:]}.",
            f"example: snapshot-harness {name} {example}",
        )
        made = commands.add_parser(name, help=told, description=about, epilog=epilog)
        made.set_defaults(run=run)
        return made

    told = "make a suite for your own agent, with a first scenario"
    scaffold.add_init_arguments(command("init", scaffold.run_init, told, "-- python agent.py"))
    example = "fix-typo --prompt 'Correct the typo in notes.txt'"
    scaffold.add_new_arguments(command("new", scaffold.run_new, "scaffold a scenario", example))
    told = "take over, or throw away, what failing runs left"
    review.add_arguments(command("review", review.run_review, told, "scenarios --accept 'fix-*'"))
    told = "send one live prompt; nothing is written"
    smoke.add_arguments(command("smoke", smoke.run_smoke, told, "scenarios --prompt 'Say OK.'"))
    told = "write the JSON Schemas of the files that people write, for editors"
    one = command("schemas", _run_schemas, told, "schemas --check")
    one.add_argument(
        "folder", nargs="?", type=Path, default=schemas.FOLDER, help="where (default: the package)"
    )
    one.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
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
