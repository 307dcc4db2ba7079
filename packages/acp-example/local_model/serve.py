# ruff: noqa: INP001  a folder of scripts beside the package, not a package
"""Serve a small, real language model on the loopback address while a command runs."""

import argparse
import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn, TypeAlias

from fetch import HERE, LocalModelError, fetch, say

Allowed: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""Tool, argument, and the only values that the model may give it."""

BASE_URL_VARIABLE = "MODEL_BASE_URL"
PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")
"""All that the server gets of the environment: it has no use for keys."""


@contextlib.contextmanager
def running(command: Sequence[str], *, deadline_s: float = 120.0) -> Iterator[str]:
    """Run a server until the block is left; yield the URL that its first line tells."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603  the server beside this file
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True,  # Ctrl-C is for the command; the server goes last
        ) as server,
    ):  # fmt: skip
        try:
            yield read_ready(server, errors, time.monotonic() + deadline_s)
            if server.poll() is not None:
                say(f"the server has ended by itself\n{tail(errors)}")
        finally:
            stop(server)


def read_ready(server: subprocess.Popen[bytes], errors: IO[bytes], until: float) -> str:
    """Wait for the server's line and return its URL."""
    out = server.stdout
    if out is None:  # pragma: no cover  it was asked for
        raise TypeError
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                _not_ready("it was not ready in time", errors)
            piece = os.read(out.fileno(), 4096)
            if not piece:
                _not_ready("it ended before it was ready", errors)
            line += piece
    try:
        ready = json.loads(line)
    except ValueError:
        _not_ready(f"its first line is not what it should be: {line!r}", errors)
    say(f"{ready['model']} is ready at {ready['url']} after {ready['seconds']} s")
    return str(ready["url"])


def _not_ready(what: str, errors: IO[bytes]) -> NoReturn:
    hint = "remove the cache directory and run this again to fetch everything anew"
    raise LocalModelError(where="local model's server", what=what, why=tail(errors), hint=hint)


def tail(errors: IO[bytes]) -> str:
    """Return the last lines of what the server said on stderr."""
    errors.seek(0)
    return "\n".join(errors.read().decode(errors="replace").splitlines()[-15:])


def stop(process: subprocess.Popen[bytes], *, grace_s: float = 5.0) -> None:
    """End a process, if it hasn't ended: by the end of its input, then TERM, then KILL."""
    steps: list[Callable[[], None]] = [process.terminate, process.kill]
    if process.stdin:
        steps.insert(0, process.stdin.close)
    for step in steps:
        if process.poll() is None:
            step()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)


@contextlib.contextmanager
def local_model(cache: Path, *, allow: Allowed | None = None, threads: int = 2) -> Iterator[str]:
    """Serve the model until the block is left; yield its base URL, `/v1` included."""
    node, engine, weights = fetch(cache)
    server = [node.node, str(HERE / "server.mjs"), str(engine), str(weights), str(threads)]
    with running([*server, json.dumps(allow or {})]) as url:
        yield url


def run_command(command: Sequence[str], base_url: str) -> int:
    """Run the user's command with the model's URL in its environment; return its status."""
    environment = {**os.environ, BASE_URL_VARIABLE: base_url}
    with subprocess.Popen(command, env=environment) as process:  # noqa: S603  the user's own
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # The command had the same Ctrl-C; it may have something to put away.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            raise
        finally:
            stop(process)
    return status if status >= 0 else 128 - status


def read_rule(text: str) -> tuple[str, str, str]:
    """Read `TOOL.ARGUMENT=VALUE`."""
    place, equals, value = text.partition("=")
    tool, _, argument = place.partition(".")
    if not (equals and tool and argument):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOOL.ARGUMENT=VALUE")
    return tool, argument, value


def allowed_values(rules: Iterable[tuple[str, str, str]]) -> Allowed:
    """Gather rules by tool and argument."""
    allowed: dict[str, dict[str, list[str]]] = {}
    for tool, argument, value in rules:
        allowed.setdefault(tool, {}).setdefault(argument, []).append(value)
    return allowed


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch what is missing, serve, run the command, stop; return the command's status."""
    parser = argparse.ArgumentParser(prog="serve.py", description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    parser.add_argument(
        "--allow", type=read_rule, action="append", default=[], metavar="TOOL.ARGUMENT=VALUE",
        help="the only values the model may give this argument (repeatable)",
    )  # fmt: skip
    parser.add_argument("command", nargs="+", help="run with MODEL_BASE_URL set")
    options = parser.parse_args(argv)
    if shutil.which(options.command[0]) is None:
        parser.error(f"there is no command {options.command[0]!r}")
    allowed = allowed_values(options.allow)
    try:
        with local_model(options.cache, allow=allowed, threads=options.threads) as url:
            return run_command(options.command, url)
    except LocalModelError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _end(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # the way out is taken once
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)  # so that what was started is stopped
    raise SystemExit(main())
