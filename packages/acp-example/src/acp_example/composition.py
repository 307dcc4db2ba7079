"""From agent.toml and its overlays to a composition whose plugins are applied."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from acp_example.config import AgentTable, CompactionTable, Document, LogTable, PluginTable
from acp_example.exceptions import ConfigError
from acp_example.llm import Llm
from acp_example.plugins import Context, Dispose, Plugin, find, parse_config, problems_of
from acp_example.tools import Executor, ToolRegistry

_OVERLAY_HINT: Final = "  hint: let it extend the composition, with llm-replay for the provider"
_OVERLAY: Final = ("extends", "agent", "log", "plugin", "patch", "insert")
_PATCHES: Final = ("id", "use", "disabled", "config")
_TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "": Document,
    "agent": AgentTable,
    "agent.compaction": CompactionTable,
    "log": LogTable,
    "plugin": PluginTable,
}


@dataclass(slots=True, kw_only=True)
class Composition:
    """An agent put together: what it was told, and what its plugins made of it."""

    file: Path
    agent: AgentTable
    log: LogTable
    llm: Llm
    tools: ToolRegistry
    executor: Executor
    plugins: list[PluginTable]
    disposers: list[Dispose] = field(default_factory=list)

    def dispose(self) -> None:
        """Undo what the plugins did, the last one first."""
        while self.disposers:
            self.disposers.pop()()


def pick(file: Path, environ: Mapping[str, str]) -> Path:
    """Return the file to compose from: in replay the overlay beside the configured one.

    Raises:
        ConfigError: There is none.
    """
    if environ.get("DSH_SNAPSHOT") != "replay" or file.name.endswith(".snapshot.toml"):
        return file
    overlay = file.with_name(f"{file.stem}.snapshot.toml")
    if overlay.is_file():
        return overlay
    raise ConfigError(
        [f"{overlay}: there is no such overlay, and DSH_SNAPSHOT is 'replay'\n{_OVERLAY_HINT}"]
    )


def read(file: Path) -> Document:
    """Read a composition with all it extends.

    Raises:
        ConfigError: With every problem of every file.
    """
    problems: list[str] = []
    merged = _merged(file, problems, ())
    if problems:
        raise ConfigError(problems)
    try:
        document = Document.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(
            [f"{file}: {_hinted(problem)}" for problem in problems_of(error)]
        ) from None
    problems += _repeated(file, document)
    if problems:
        raise ConfigError(problems)
    return document


def compose(file: Path, document: Document | None = None) -> Composition:
    """Put an agent together.

    Raises:
        ConfigError: With every problem: of the files, of the plugins and of their configurations.
    """
    document = document or read(file)
    problems: list[str] = []
    llm, tools = Llm(), ToolRegistry()
    context = Context(llm=llm, tools=tools, config=document.agent, directory=file.parent)
    disposers = _apply_all(file, document, context, problems)
    if not problems:
        problems += _unanswered(file, document.agent, llm)
    if problems:
        for undo in reversed(disposers):
            undo()
        raise ConfigError(problems)
    return Composition(
        file=file,
        agent=document.agent,
        log=document.log,
        llm=llm,
        tools=tools,
        executor=context.service("executor") if "executor" in context else _default_executor(),
        plugins=document.plugin,
        disposers=disposers,
    )


def _apply_all(
    file: Path, document: Document, context: Context, problems: list[str]
) -> list[Dispose]:
    """Load every plugin, then apply them in order; return what undoes it."""
    loaded = [
        _load(f"{file}: plugin {table.id!r}", table, problems)
        for table in document.plugin
        if not table.disabled
    ]
    # With a problem anywhere nothing is applied any more, but every need is still checked.
    disposers = [_apply(entry, context, problems) for entry in loaded if entry is not None]
    return [disposer for disposer in disposers if disposer is not None]


def _default_executor() -> Executor:
    from acp_example.executor import Config, ShellExecutor  # noqa: PLC0415  only where none is given

    return ShellExecutor(Config())


def _merged(file: Path, problems: list[str], seen: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file, and what it extends below it."""
    if file in seen:
        problems.append(f"{file}: extends itself, by way of {seen[-1].name!r}")
        return {}
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f"{file}: can't be read: {os.strerror(error.errno or 0)}")
        return {}
    except ValueError as error:
        problems.append(f"{file}: is not TOML: {error}")
        return {}
    if "extends" not in document:
        if "patch" in document or "insert" in document:
            problems.append(f"{file}: 'patch' and 'insert' need an 'extends' to apply to")
        return document
    known = set(_OVERLAY)
    problems += [f"{file}: {_unknown(key, known)}" for key in document if key not in known]
    base = _merged(file.with_name(str(document["extends"])), problems, (*seen, file))
    for table in ("agent", "log"):
        if table in document:
            base[table] = {**base.get(table, {}), **document[table]}
    plugins: list[dict[str, Any]] = [dict(entry) for entry in base.get("plugin", [])]
    for patch in document.get("patch", []):
        _patch(file, plugins, patch, problems)
    base["plugin"] = [*plugins, *document.get("plugin", []), *document.get("insert", [])]
    return base


def _patch(
    file: Path, plugins: list[dict[str, Any]], patch: Mapping[str, Any], problems: list[str]
) -> None:
    """Set whole keys of the plugin that a patch names."""
    wanted = patch.get("id")
    matches = [plugin for plugin in plugins if plugin.get("id") == wanted]
    if not matches:
        known = {str(plugin.get("id")) for plugin in plugins}
        near = difflib.get_close_matches(str(wanted), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f" (there is {sorted(known)})"
        problems.append(f"{file}: patch {wanted!r} matches no plugin{hint}")
        return
    problems += [
        f"{file}: patch {wanted!r}: {_unknown(key, set(_PATCHES))}"
        for key in patch
        if key not in _PATCHES
    ]
    matches[0].update(patch)


def _unknown(key: str, known: set[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(sorted(known))}"
    return f"unknown key {key!r}; {hint}"


def _hinted(problem: str) -> str:
    """Say of an unknown key which known one may be meant."""
    place, _, what = problem.partition(": ")
    if not what.startswith("Extra inputs"):
        return problem
    table, _, key = place.rpartition(".")
    known = _TABLES.get(table.split(".", maxsplit=1)[0] if "plugin" in table else table, Document)
    return f"{place}: {_unknown(key, set(known.model_fields))}"


def _repeated(file: Path, document: Document) -> list[str]:
    ids = [table.id for table in document.plugin]
    return [
        f"{file}: two plugins have the id {name!r}"
        for name in dict.fromkeys(ids)
        if ids.count(name) > 1
    ]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A plugin that is there, with its configuration."""

    where: str
    plugin: Plugin
    config: Any


def _load(where: str, table: PluginTable, problems: list[str]) -> _Loaded | None:
    try:
        plugin = find(table.use)
    except LookupError as error:
        problems.append(f"{where}: {error.args[0]}")
        return None
    config, wrong = parse_config(plugin, table.config)
    problems += [f"{where}: config: {problem}" for problem in wrong]
    return _Loaded(where, plugin, config)


def _apply(entry: _Loaded, context: Context, problems: list[str]) -> Dispose | None:
    missing = [name for name in entry.plugin.inject if name not in context]
    if missing:
        needs = ", ".join(repr(name) for name in missing)
        there = ", ".join(context.names)
        problems.append(f"{entry.where}: needs the service {needs}; there is {there}")
    if problems:
        return None
    try:
        return entry.plugin.apply(context, entry.config)
    except Exception as error:  # noqa: BLE001  a plugin's own errors; all become problems
        problems += [f"{entry.where}: {problem}" for problem in problems_of(error)]
        return None


def _unanswered(file: Path, agent: AgentTable, llm: Llm) -> list[str]:
    """Say whether nobody would answer the configured model."""
    if llm.intercepted:
        return []
    adapter = llm.providers.get(agent.provider)
    if adapter is None:
        offered = ", ".join(repr(name) for name in llm.providers) or "none"
        return [
            f"{file}: agent.provider: no provider is named {agent.provider!r}; there is {offered}"
        ]
    models = [model.id for model in adapter.models]
    if models and agent.model not in models:
        offered = ", ".join(repr(name) for name in models)
        return [f"{file}: agent.model: {agent.provider!r} has no {agent.model!r}; it has {offered}"]
    return []


def state_root(environ: Mapping[str, str]) -> Path:
    """Return where the agent keeps what outlives it, if nothing else was said."""
    with suppress(KeyError):
        return Path(environ["XDG_STATE_HOME"]) / "acp-example"
    return Path(environ.get("HOME", "/tmp")) / ".local" / "state" / "acp-example"  # noqa: S108  without a home there is no better place
