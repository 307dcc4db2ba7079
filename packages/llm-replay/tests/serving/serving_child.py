"""A process that reads calls as one session, and can be told to die at any of its writes.

Arguments: session, calls to read, number of the system call that kills it (0: none), logs.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replay_kit import Request, Runtime, collect, install, texts


def main() -> None:
    session, calls, kill_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    die_at(kill_at)
    runtime = Runtime()
    handle = install(runtime, *map(Path, sys.argv[4:]), verdict=Path(os.environ["VERDICT"]))
    sys.stdin.readline()  # all begin together
    words = asyncio.run(read(runtime, session, calls))
    print(*words, flush=True)  # noqa: T201  the parent reads it
    if "DISPOSE" in os.environ:
        handle.dispose()
    os.kill(os.getpid(), signal.SIGKILL)


async def read(runtime: Runtime, session: str, calls: int) -> list[str]:
    return [
        word
        for _ in range(calls)
        for word in texts(await collect(runtime.stream(Request(session_id=session))))
    ]


def die_at(number: int) -> None:
    """Kill this process right before its system call `number` among those that leave traces."""
    done = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  whatever the call takes
            nonlocal done
            done += 1
            if done == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return run

    for name in ("open", "write", "link", "unlink"):
        setattr(os, name, counted(getattr(os, name)))


if __name__ == "__main__":
    main()
