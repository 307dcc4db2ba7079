"""What suite.toml and scenario.toml may say, and reading them."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pydantic

from snapshot_harness.documents import Strict, read_toml
from snapshot_harness.exceptions import Problem, ScenarioError
from snapshot_harness.paths import is_absolute, whole_path_pattern
from snapshot_harness.rules import Rule, Rules, is_path

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
PARENT_TOKEN = "{{parent}}"  # noqa: S105  a placeholder


class Capabilities(Strict):
    """What the client lets the agent ask of it."""

    fs: bool = False
    """Serve `fs/read_text_file` and `fs/write_text_file` inside the run's cwd."""
    terminal: bool = False
    """Serve `terminal/*` inside the run's cwd."""


class Deadlines(Strict):
    """How long what may take, in seconds."""

    step_s: float = pydantic.Field(default=60.0, gt=0, allow_inf_nan=False)
    """One step of input.json, sending included."""
    scenario_s: float = pydantic.Field(default=120.0, gt=0, allow_inf_nan=False)
    """A whole run of the agent."""
    shutdown_s: float = pydantic.Field(default=10.0, gt=0, allow_inf_nan=False)
    """From the end of the agent's stdin to its exit."""


class NormalizationRule(Strict):
    """A value that moves from run to run, and the token it becomes."""

    path: str | None = None
    """A JSON path; the value there becomes the token."""
    pattern: str | None = None
    """A regular expression; what it matches in any string becomes the token."""
    token: str
    """What is written instead."""

    @pydantic.model_validator(mode="after")
    def _one_of_both(self) -> "NormalizationRule":
        if (self.path is None) == (self.pattern is None):
            raise ValueError("a rule has either `path` or `pattern`")
        if self.path is not None and not is_path(self.path):
            raise ValueError("`path` is none; one is spelled such as `a.b[0]`, `a.*` or `**.pid`")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"`pattern` is no regular expression: {error}") from None
            if Rule(**self.model_dump()).in_text(self.token) != self.token:
                raise ValueError("`pattern` matches a part of `token`, which would grow each time")
        return self


class RecordSettings(Strict):
    """What record mode tells before it calls anything."""

    endpoint: str = ""
    """What is about to be called, in words or as a URL."""
    base_url_env: str | None = None
    """A variable with the base URL; set, it stands for the key too."""
    model: str = ""
    """The model's name, for the `[recorded]` table."""


class SuiteFile(Strict):
    """`suite.toml`: how to boot the agent under test, and what all scenarios share."""

    command: list[str] = pydantic.Field(min_length=1)
    """The agent's argv; `{python}`, `{suite}` and `{config}` are filled in."""
    config: str | None = None
    """The agent's composition, relative to suite.toml."""
    log: Literal["session-jsonl", "none"] = "session-jsonl"
    """Where the session log comes from."""
    verdict: Literal["required", "optional"] = "required"
    """Whether the agent's replay must tell what it served."""
    coalesce_chunks: bool = False
    """Compare neighbouring message chunks as one text."""
    identity: Literal["numbered", "merged"] = "numbered"
    """One token per id, or one for all."""
    header_classes: list[str] = pydantic.Field(default=["default"], min_length=1)
    """Classes of composed prompt and tools; the first is the default."""
    env: dict[str, str] = pydantic.Field(default={})
    """Variables the agent gets in every mode."""
    keys: list[str] = pydantic.Field(default=[])
    """Variables passed on in record mode only, from the environment or `.env`."""
    record_env: dict[str, str] = pydantic.Field(default={})
    """Fixed variables the agent gets in record mode only."""
    capabilities: Capabilities = Capabilities()
    rule: list[NormalizationRule] = pydantic.Field(default=[])
    """Further rules of normalization."""
    deadlines: Deadlines = Deadlines()
    max_fixture_bytes: int = pydantic.Field(default=2_000_000, gt=0)
    """The largest file a scenario may hold."""
    record: RecordSettings = RecordSettings()


class ScenarioFile(Strict):
    """`scenario.toml`: why a scenario exists, and what is special about it."""

    why: str = pydantic.Field(min_length=1)
    """One sentence: which behaviour this holds."""
    origin: Literal["recorded", "authored"]
    """Recorded from a live model, or written by hand and never recorded."""
    overridden: bool = False
    """Whether replay.override.json stands beside it."""
    pins_header: bool = False
    """Whether it owns the prompt and tool sidecars of its class."""
    header_class: str | None = None
    """Its header class; default: the suite's first."""
    config: str | None = None
    """Another composition of the agent, relative to suite.toml."""
    env: dict[str, str] = pydantic.Field(default={})
    """Variables the agent gets, over the suite's."""
    compares_log: bool | None = None
    """Default: true when input.json prompts."""
    layout: Literal["plain", "packed"] = "plain"
    """One row per chunk, or packed rows."""
    malformed: bool = False
    """Whether its stream breaks the grammar on purpose."""
    workspace_parent: str | None = None
    """Where the run's cwd is made, instead of below the run directory: `{{parent}}` in fixtures."""
    platforms: list[str] = pydantic.Field(default=[])
    """`sys.platform` values it is for; none: all."""
    timeout_s: float | None = pydantic.Field(default=None, gt=0, allow_inf_nan=False)
    """Its own deadline, instead of the suite's `scenario_s`."""
    recorded: dict[str, Any] = pydantic.Field(default={})
    """What record wrote; nothing compares it."""


@dataclass(frozen=True)
class Scenario:
    """One directory of the suite; its scenario.toml is read when first asked for."""

    directory: Path

    @property
    def name(self) -> str:
        """The directory's name, which is the scenario's id."""
        return self.directory.name

    @cached_property
    def file(self) -> ScenarioFile:
        """What scenario.toml says.

        Raises:
            ScenarioError: It says what it may not.
        """
        return read_scenario(self.directory / "scenario.toml")

    @property
    def is_readable(self) -> bool:
        """Whether scenario.toml says only what it may."""
        try:
            return bool(self.file.why)
        except ScenarioError:
            return False

    @property
    def runs_here(self) -> bool:
        """Whether it is for this platform; one that can't be read is, to be reported."""
        if not self.is_readable:
            return True
        return not self.file.platforms or sys.platform in self.file.platforms


@dataclass(frozen=True)
class Suite:
    """A suite.toml and the scenarios beside it."""

    path: Path
    file: SuiteFile

    @property
    def directory(self) -> Path:
        """Where suite.toml stands."""
        return self.path.parent

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Every directory with a scenario.toml, by name."""
        entries = sorted(self.directory.iterdir(), key=lambda entry: entry.name)
        return tuple(Scenario(entry) for entry in entries if (entry / "scenario.toml").is_file())

    def command_for(self, scenario: ScenarioFile) -> list[str]:
        """Return the agent's argv for a scenario."""
        return [self._filled(part, scenario) for part in self.file.command]

    def env_for(self, scenario: ScenarioFile) -> dict[str, str]:
        """Return the variables that the suite and a scenario name."""
        named = {**self.file.env, **scenario.env}
        return {name: self._filled(value, scenario) for name, value in named.items()}

    @property
    def capabilities(self) -> frozenset[str]:
        """What the client lets the agent ask of it, by name."""
        granted = self.file.capabilities.model_dump()
        return frozenset(name for name, is_granted in granted.items() if is_granted)

    def _filled(self, text: str, scenario: ScenarioFile) -> str:
        config = scenario.config or self.file.config
        values = {"python": sys.executable, "suite": str(self.directory)}
        if config is not None:
            values["config"] = str(self.directory / config)
        pattern = r"\{(" + "|".join(values) + r")\}"
        return re.sub(pattern, lambda match: values[match[1]], text)

    def header_class_of(self, scenario: ScenarioFile) -> str:
        """Return the class whose pin says what the scenario's sessions are told."""
        return scenario.header_class or self.file.header_classes[0]


def read_suite(path: Path) -> Suite:
    """Read suite.toml.

    Raises:
        ScenarioError: With every problem of the file.
    """
    path = path.resolve()
    file = read_toml(path, SuiteFile)
    problems = list(_suite_problems(path, file))
    if problems:
        raise ScenarioError(problems=problems)
    return Suite(path, file)


def read_scenario(path: Path) -> ScenarioFile:
    """Read a scenario.toml.

    Raises:
        ScenarioError: With every problem of the file.
    """
    file = read_toml(path, ScenarioFile)
    if NAME.fullmatch(path.parent.name) is None:
        what = f"{path.parent.name!r} is no name for a scenario"
        hint = "rename the directory: lower-case letters, digits and dashes, not a dash first"
        raise ScenarioError(problems=[Problem(path=path, line=None, what=what, why="", hint=hint)])
    return file


def rules_of(suite: Suite) -> Rules:
    """Return how a suite normalizes."""
    file = suite.file
    rules = tuple(Rule(**rule.model_dump()) for rule in file.rule)
    return Rules(identity=file.identity, rules=rules, coalesce_chunks=file.coalesce_chunks)


def rules_of_run(suite: Suite, scenario: Scenario) -> Rules:
    """Return how a scenario's runs are normalized: the workspace may be somebody's own place."""
    rules = rules_of(suite)
    parent = workspace_parent(suite, scenario)
    if parent is None or not is_absolute(str(parent)):
        return rules
    named = Rule(pattern=whole_path_pattern(str(parent)), token=PARENT_TOKEN)
    return replace(rules, rules=(named, *rules.rules))


def workspace_parent(suite: Suite, scenario: Scenario) -> Path | None:
    """Return the directory in which a scenario's workspace is made, if it says one."""
    said = scenario.file.workspace_parent
    return None if said is None else (suite.directory / Path(said).expanduser()).resolve()


def _suite_problems(path: Path, file: SuiteFile) -> Iterator[Problem]:
    uses_config = any("{config}" in part for part in file.command)
    if uses_config and file.config is None:
        yield Problem(
            path=path,
            line=None,
            what="`command` names {config}, and there is no `config`",
            why="",
            hint='add `config = "FILE"`, relative to suite.toml',
        )
    if file.config is not None and not (path.parent / file.config).is_file():
        yield Problem(
            path=path,
            line=None,
            what=f"`config` names {file.config!r}, which is not there",
            why="",
            hint="write the composition, or correct the name",
        )
