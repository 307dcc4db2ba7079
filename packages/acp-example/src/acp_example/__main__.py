"""The command line: serve ACP over stdio, or look at the composition."""

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from acp_example.exceptions import ConfigError


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, run, return the exit status."""
    parser = argparse.ArgumentParser(prog="acp-example", description=__doc__)
    parser.add_argument(
        "command",
        nargs="?",
        choices=["serve", "doctor"],
        default="serve",
        help="serve is what it does by default; doctor tells what is composed, and what is missing",
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=Path("agent.toml"),
        metavar="FILE",
        help="the composition; by default agent.toml",
    )
    options = parser.parse_args(argv)
    config = options.config.absolute()
    if options.command == "doctor":
        from acp_example.doctor import examine  # noqa: PLC0415  serving needs none of it

        return examine(config, os.environ, print)
    return serve(config, os.environ)


def serve(config: Path, environ: Mapping[str, str]) -> int:
    """Serve one client on stdin and stdout."""
    from acp_example.stdio import claim_stdout  # noqa: PLC0415  before anything can print

    frames = claim_stdout()
    # What is imported now stays: looking for garbage among it costs a twelfth of the start-up.
    gc.disable()
    try:
        from acp_example import boot  # noqa: PLC0415

        host = boot.host(config, environ)
        with suppress(KeyboardInterrupt):
            boot.run(host, source=0, target=frames)
    except ConfigError as error:
        print(f"acp-example: {error}", file=sys.stderr)
        return 2
    finally:
        gc.enable()
    return 0


def entry() -> NoReturn:
    """Run as a program, and leave at once when all is written."""
    status = main()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as where the program was started with a closed one
            with suppress(OSError):
                stream.flush()
    os._exit(status)


if __name__ == "__main__":
    entry()
