"""What record needs before it calls anything: whom to record, and the provider's key."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from snapshot_harness.dotenv import parse_dotenv
from snapshot_harness.exceptions import HarnessError
from snapshot_harness.run_report import shown_path
from snapshot_harness.suite import Scenario, Suite

_URL = re.compile(r"([a-z][a-z0-9+.-]*://)(?:[^/?#]*@)?([^?#]*).*", re.IGNORECASE | re.DOTALL)


class GateError(HarnessError):
    """Record may not start; nothing was called."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Names or globs of scenarios; all of them only where that was asked for."""

    names: Sequence[str] = ()
    everything: bool = False

    def takes(self, scenario: Scenario) -> bool:
        """Tell whether a scenario is to be recorded; authored ones never are."""
        if not scenario.is_readable or scenario.file.origin != "recorded":
            return False
        return self.everything or any(fnmatchcase(scenario.name, name) for name in self.names)


def keys_for(suite: Suite, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that record passes on, from the environment or else from `.env`.

    Raises:
        GateError: The `.env` file can't be read.
    """
    environ = os.environ if environ is None else environ
    known = {**_stored(suite), **environ}
    return {name: known[name] for name in suite.file.keys if known.get(name)}


def unnamed_keys(suite: Suite) -> list[str]:
    """Return what to tell of variables that `.env` sets, and that are not passed on.

    Raises:
        GateError: The `.env` file can't be read.
    """
    names = [name for name in _stored(suite) if name not in suite.file.keys]
    if not names:
        return []
    file = shown_path(suite.directory / ".env")
    are = "it is" if len(names) == 1 else "they are"
    unnamed = f"{file} sets {', '.join(names)}, which `keys` in suite.toml does not name"
    return [f"{unnamed}: {are} not passed on"]


def _stored(suite: Suite) -> dict[str, str]:
    path = suite.directory / ".env"
    try:
        return parse_dotenv(path.read_text("utf-8")) if path.is_file() else {}
    except ValueError as error:
        hint = "write one NAME=VALUE a line"
        raise GateError(f"{path}: {error}\n  hint: {hint}") from None


def check_gate(suites: Sequence[Suite], selection: Selection) -> list[str]:
    """Return what is about to be called, for which scenarios, and what is not passed on.

    Raises:
        GateError: Nothing was chosen, a name fits nothing, or the key is missing.
    """
    recorded = [(suite, one) for suite in suites for one in suite.scenarios if _is_recorded(one)]
    if not selection.names and not selection.everything:
        raise GateError(_listing([one.name for _, one in recorded]))
    for name in selection.names:
        _check_name(name, suites)
    lines = []
    for suite in suites:
        chosen = [one.name for owner, one in recorded if owner is suite and selection.takes(one)]
        if chosen:
            check_keys(suite)
            lines.append(f"recording {', '.join(chosen)} from {endpoint_of(suite)}")
            lines += unnamed_keys(suite)
    return lines


def check_keys(suite: Suite) -> None:
    """Refuse to call a live model without a key, or a base URL that needs none.

    Raises:
        GateError: None of the suite's `keys` has a value.
    """
    wanted = suite.file.keys
    if not wanted or keys_for(suite):
        return
    raise GateError(
        f"{suite.path}: recording calls a live model, and no key is there\n"
        f"  Looked for {' or '.join(wanted)} in the environment and in "
        f"{suite.directory / '.env'}.\n"
        "  hint: set one of them"
    )


def endpoint_of(suite: Suite) -> str:
    """Return what is called, in words: the base URL where one is given, without its secrets."""
    record = suite.file.record
    keys = keys_for(suite)
    base = keys.get(record.base_url_env) if record.base_url_env is not None else None
    called = shown_url(base or record.endpoint or "the agent's own provider")
    return f"{called} (model {record.model})" if record.model else called


def shown_url(text: str) -> str:
    """Return a URL without what only its server should see; other words as they are."""
    match = _URL.fullmatch(text)
    return text if match is None else match[1] + match[2]


def _check_name(name: str, suites: Sequence[Suite]) -> None:
    scenarios = [one for suite in suites for one in suite.scenarios]
    fitting = [one for one in scenarios if fnmatchcase(one.name, name)]
    if any(_is_recorded(one) for one in fitting):
        return
    if not fitting:
        names = ", ".join(one.name for one in scenarios if _is_recorded(one)) or "none"
        raise GateError(
            f"no scenario is called {name!r}\n  hint: an exact name or a glob; there are: {names}"
        )
    one = fitting[0]
    if not one.is_readable:
        raise GateError(f"{one.name!r} can't be read\n  hint: run it, to see why")
    if one.file.origin == "recorded":
        platforms = ", ".join(one.file.platforms)
        raise GateError(f"{one.name!r} is for {platforms}\n  hint: record it there")
    raise GateError(
        f"{one.name!r} is authored, and never recorded\n"
        '  hint: say `origin = "recorded"` in its scenario.toml if a model should write it'
    )


def _is_recorded(scenario: Scenario) -> bool:
    return scenario.is_readable and scenario.runs_here and scenario.file.origin == "recorded"


def _listing(names: Sequence[str]) -> str:
    listed = "".join(f"\n  {name}" for name in names) or "\n  (no scenario has that origin)"
    return (
        f"recording costs money, so say what: --snapshot-record NAME records one of{listed}\n"
        "  hint: --snapshot-all records all of them"
    )
