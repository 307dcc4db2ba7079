"""Pytest plugin: collects scenarios from suite.toml.

Everything beyond pytest is imported where it is used: this module is loaded by
every pytest run of an environment that has the package.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from snapshot_harness.pytest_plugin.items import SuiteCollector
from snapshot_harness.pytest_plugin.reporting import Controller, Worker
from snapshot_harness.run_report import SUITE, node_of, stray_lines

MODES = ("replay", "refresh", "record")
_HANDLERS = pytest.StashKey[dict[signal.Signals, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a snapshot run."""
    group = parser.getgroup("snapshot", "snapshot scenarios")
    group.addoption(
        "--snapshot-mode",
        choices=MODES,
        default="replay",
        help="replay compares (default); refresh rewrites expectations; record calls a live model",
    )
    group.addoption(
        "--snapshot-on-ci",
        action="store_true",
        help="allow record although CI is set",
    )
    group.addoption(
        "--snapshot-record",
        action="append",
        default=[],
        metavar="NAME",
        help="record this scenario: an exact name or a glob (repeatable)",
    )
    group.addoption("--snapshot-all", action="store_true", help="record all recorded scenarios")
    group.addoption(
        "--snapshot-shard",
        type=_shard,
        metavar="I/N",
        help="replay the I-th of N parts of each suite; the guards are in the first",
    )
    group.addoption(
        "--snapshot-report", type=Path, metavar="FILE", help="write what came of it as JSON"
    )


def _shard(text: str) -> str:
    from snapshot_harness.shard import shard_option  # noqa: PLC0415

    return shard_option(text)


def pytest_configure(config: pytest.Config) -> None:
    """Take a scenario's directory as its test; refuse to write on CI, where nobody reviews.

    Raises:
        pytest.UsageError: The mode writes, and CI is set, or only a part is to run;
            or a directory is named that is none of a scenario.
    """
    mode = config.getoption("snapshot_mode")
    if mode != "replay" and config.getoption("snapshot_shard"):
        raise pytest.UsageError(
            f"--snapshot-shard cuts a replay, and --snapshot-mode={mode} writes\n"
            "  hint: choose by name: -k to refresh, --snapshot-record to record"
        )
    if mode != "replay" and not (mode == "record" and config.getoption("snapshot_on_ci")):
        from snapshot_harness.modes import on_ci  # noqa: PLC0415

        if on_ci(os.environ):
            remedy = {
                "refresh": "refresh at your desk, and commit what changed after you have read it",
                "record": "--snapshot-on-ci allows it, on purpose and in plain sight",
            }
            raise pytest.UsageError(
                f"--snapshot-mode={mode} writes fixtures, and CI only replays\n"
                f"  hint: {remedy[mode]}"
            )
    start = config.invocation_params.dir
    if stray := stray_lines(config.args, start):
        raise pytest.UsageError("\n".join(stray))
    config.args = [node_of(one, start) for one in config.args]
    is_worker = hasattr(config, "workerinput")
    plugin = Worker(config) if is_worker else Controller(config)
    config.pluginmanager.register(plugin, "snapshot-run")
    if threading.current_thread() is threading.main_thread():
        # xdist's workers ignore Ctrl-C, and ours must not: they have agents to end.
        numbers = [signal.SIGTERM, *([signal.SIGINT] if is_worker else [])]
        config.stash[_HANDLERS] = {
            number: signal.signal(number, plugin.interrupt) for number in numbers
        }


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let the watchdog end, and put the signals back."""
    for number, handler in config.stash.get(_HANDLERS, {}).items():
        signal.signal(number, handler)
    watchdog = sys.modules.get("snapshot_harness.watchdog")
    if watchdog is not None:
        watchdog.WATCHDOG.close()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep pytest out of a suite's directories: a workspace may hold tests of its own."""
    if collection_path.is_dir() and (collection_path.parent / SUITE).is_file():
        return True
    return None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "SuiteCollector | None":
    """Collect suite.toml files."""
    if file_path.name != SUITE:
        return None
    return SuiteCollector.from_parent(parent, path=file_path)
