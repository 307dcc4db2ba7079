"""From a configuration file to an agent that serves."""

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from acp_example.composition import compose, pick, read, state_root
from acp_example.config import LogTable
from acp_example.host import Host
from acp_example.sessions import Sessions
from acp_example.spill import SpillRoot
from acp_example.store import Store

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


def host(config: Path, environ: Mapping[str, str]) -> Host:
    """Compose the agent.

    Raises:
        ConfigError: With every problem.
    """
    file = pick(config, environ)
    document = read(file)
    return Host(
        composition=compose(file, document),
        store=store(document.log, environ),
        spill=SpillRoot(_root(environ, "SPILL", document.log.spill_root)),
        environment=dict(environ),
    )


def store(log: LogTable, environ: Mapping[str, str]) -> Store:
    """Return where session logs go, and in which form."""
    raw = "DSH_SNAPSHOT" in environ
    return Store(
        root=_root(environ, "SESSIONS", log.sessions_root),
        layout=log.layout,
        compression="none" if raw else log.compression,
    )


def run(host: Host, *, source: int, target: int) -> None:
    """Serve one client to its end."""
    # The SDK takes half a second to import, so a broken composition is told before.
    from acp_example.server import serve  # noqa: PLC0415

    # All that was imported lives as long as the process: no collection need look at it again.
    gc.freeze()
    gc.enable()
    asyncio.run(serve(Sessions(host), source=source, target=target, told=_heed_signals))


def _heed_signals(stop: Callable[[], None]) -> None:
    """Let the first signal end the agent in order: commands have a process group of their own.

    The second one ends it at once. What is ignored, as by nohup, stays ignored.
    """
    loop = asyncio.get_running_loop()
    heeded = [one for one in _SIGNALS if signal.getsignal(one) is signal.SIG_DFL]

    def heed() -> None:
        for one in heeded:
            loop.remove_signal_handler(one)
        stop()

    for one in heeded:
        loop.add_signal_handler(one, heed)


def _root(environ: Mapping[str, str], name: str, configured: str | None) -> Path:
    given = environ.get(f"DSH_SNAPSHOT_{name}_ROOT") or configured
    root = Path(given).expanduser() if given else state_root(environ) / name.lower()
    return root.absolute()
