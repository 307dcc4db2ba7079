"""`acp-example doctor`: what is composed, what is missing, is the endpoint reachable."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from acp_example.boot import store
from acp_example.composition import Composition, compose, pick, read
from acp_example.config import LogTable
from acp_example.exceptions import ConfigError
from acp_example.findings import Finding


def examine(config: Path, environ: Mapping[str, str], tell: Callable[[str], None]) -> int:
    """Look at everything the agent needs and tell it; return 1 where something is missing."""
    try:
        file = pick(config, environ)
        document = read(file)
        composition = compose(file, document)
    except ConfigError as error:
        for problem in error.problems:
            tell(str(Finding("composition", problem, "correct it; the agent starts with none")))
        return 1
    healthy = True
    try:
        for finding in _findings(composition, document.log, environ):
            healthy = healthy and finding.hint is None
            tell(str(finding))
    finally:
        composition.dispose()
    return 0 if healthy else 1


def _findings(
    composition: Composition, log: LogTable, environ: Mapping[str, str]
) -> Iterator[Finding]:
    agent = composition.agent
    yield Finding("composition", str(composition.file))
    yield Finding("model", f"{agent.provider}/{agent.model}")
    yield Finding("permissions", f"{agent.permission_mode}, approvals {agent.approvals}")
    for plugin in composition.plugins:
        disabled = " (disabled)" if plugin.disabled else ""
        yield Finding("plugin", f"{plugin.id}: {plugin.use}{disabled}")
    names = [tool.spec.name for tool in composition.tools.all()]
    yield Finding(
        "tools",
        ", ".join(names) or "none",
        None if names else "without tools a model can only talk: add acp_example.builtin",
    )
    if "bash" in names:
        yield _shell(environ)
    yield _sessions(store(log, environ).root)
    for adapter in composition.llm.providers.values():
        # Providers that reach out say how that goes; replayed ones have nobody to reach.
        check = getattr(adapter, "check", None)
        models = ", ".join(model.id for model in adapter.models) or "any"
        yield Finding("provider", f"{adapter.name}, models {models}")
        if check is not None:
            yield from asyncio.run(check())


def _shell(environ: Mapping[str, str]) -> Finding:
    found = shutil.which("bash", path=environ.get("PATH"))
    if found:
        return Finding("shell", found)
    return Finding("shell", "there is no bash in PATH", "install it, or disable the tool")


def _sessions(root: Path) -> Finding:
    """Say whether session logs can be kept; the first of the folders that exists must be ours."""
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Finding("sessions", str(root))
    return Finding("sessions", f"{root} can't be written", f"look at {there}, or set sessions_root")
