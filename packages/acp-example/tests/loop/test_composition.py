import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from acp_example.composition import Composition, compose, pick, read, state_root
from acp_example.exceptions import ConfigError
from acp_example.plugins import Context
from llm_replay.seam import ModelInfo

Write = Callable[..., Path]


class Config(BaseModel):
    """What the test plugin may be told."""

    model_config = ConfigDict(extra="forbid")

    models: list[str] = ["m1"]
    size: int = 1


class Adapter:
    """A provider that is never asked."""

    name = "Test"
    retry_policy = None

    def __init__(self, models: list[str]) -> None:
        self.models = [ModelInfo(id=model) for model in models]


@pytest.fixture
def log() -> list[str]:
    """What the plugins of a test did."""
    return []


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, log: list[str]) -> None:
    """Modules that a composition can name: a provider, a broken plugin, one with a need."""

    def module(name: str, /, **parts: Any) -> None:  # noqa: ANN401  parts of a plugin
        made = types.ModuleType(name)
        for key, part in parts.items():
            setattr(made, key, part)
        monkeypatch.setitem(sys.modules, name, made)

    def provide(context: Context, config: Config) -> Callable[[], None]:
        undo = context.service("llm").register_provider("test", Adapter(config.models))
        log.append("applied")

        def dispose() -> None:
            undo()
            log.append("disposed")

        return dispose

    def explode(_context: Context, _config: Config) -> None:
        raise RuntimeError("no luck today")

    def serve(context: Context, _config: Config) -> None:
        context.provide("weather", "sunny")

    def need(context: Context, _config: Config) -> None:
        log.append(context["weather"])

    def executor(context: Context, _config: Config) -> None:
        context.provide("executor", "mine")

    monkeypatch.setattr("acp_example.plugins.entry_points", lambda **_wanted: [])
    module("plug_provider", name="p", inject=("llm",), Config=Config, apply=provide)
    module("plug_broken", name="b", inject=(), Config=Config, apply=explode)
    module("plug_weather", name="w", inject=(), Config=Config, apply=serve)
    module("plug_needs", name="n", inject=("weather", "llm"), Config=Config, apply=need)
    module("plug_executor", name="e", inject=(), Config=Config, apply=executor)
    module("plug_shapeless", name="s", inject=())


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a composition."""

    def make(text: str, name: str = "agent.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


PROVIDER = """
[agent]
provider = "test"
model = "m1"

[[plugin]]
id = "model"
use = "plug_provider"
"""


def problems(file: Path) -> list[str]:
    """Return what is wrong with a composition, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        compose(file)
    return [problem.replace(f"{file.parent}/", "") for problem in caught.value.problems]


@pytest.mark.usefixtures("plugins")
def test_composition_applies_its_plugins_in_order(write: Write, log: list[str]) -> None:
    composition = compose(write(PROVIDER))

    assert isinstance(composition, Composition)
    assert list(composition.llm.providers) == ["test"]
    assert log == ["applied"]


@pytest.mark.usefixtures("plugins")
def test_composition_is_undone_the_last_plugin_first(write: Write, log: list[str]) -> None:
    composition = compose(write(PROVIDER))

    composition.dispose()
    composition.dispose()

    assert log == ["applied", "disposed"]
    assert list(composition.llm.providers) == []


@pytest.mark.usefixtures("plugins")
def test_overlay_disables_inserts_and_restates_nothing(write: Write, log: list[str]) -> None:
    write(PROVIDER + '[plugin.config]\nmodels = ["m1", "m2"]\n')
    overlay = write(
        """
        extends = "agent.toml"
        [agent]
        model = "m2"
        [log]
        layout = "packed"
        [[patch]]
        id = "model"
        config = { models = ["m2"] }
        [[insert]]
        id = "weather"
        use = "plug_weather"
        [[insert]]
        id = "needs"
        use = "plug_needs"
        """,
        "agent.snapshot.toml",
    )

    composition = compose(overlay)

    assert composition.agent.provider == "test"
    assert composition.agent.model == "m2"
    assert composition.log.layout == "packed"
    assert [model.id for model in composition.llm.providers["test"].models] == ["m2"]
    assert log == ["applied", "sunny"]


@pytest.mark.usefixtures("plugins")
def test_disabled_plugin_is_not_even_loaded(write: Write) -> None:
    file = write(PROVIDER + '[[plugin]]\nid = "gone"\nuse = "no_such_module"\ndisabled = true\n')

    compose(file)


@pytest.mark.usefixtures("plugins")
def test_executor_can_be_replaced_by_a_plugin(write: Write) -> None:
    default = compose(write(PROVIDER))
    replaced = compose(write(PROVIDER + '[[plugin]]\nid = "sandbox"\nuse = "plug_executor"\n'))

    assert type(default.executor).__name__ == "ShellExecutor"
    assert replaced.executor == "mine"  # type: ignore[comparison-overlap] # any object will do


@pytest.mark.usefixtures("plugins")
def test_overlay_may_extend_an_overlay(write: Write) -> None:
    write(PROVIDER)
    write('extends = "agent.toml"\n[agent]\nmax_rounds = 3\n', "middle.toml")
    top = write('extends = "middle.toml"\n[agent]\napprovals = "never"\n', "top.toml")

    document = read(top)

    assert (document.agent.max_rounds, document.agent.approvals) == (3, "never")


def test_overlay_that_extends_itself_is_a_problem(write: Write) -> None:
    write('extends = "b.toml"\n', "a.toml")
    write('extends = "a.toml"\n', "b.toml")

    assert problems(write('extends = "a.toml"\n', "c.toml")) == [
        "a.toml: extends itself, by way of 'b.toml'"
    ]


@pytest.mark.usefixtures("plugins")
def test_all_problems_are_told_at_once(write: Write) -> None:
    file = write(
        """
        [agent]
        provider = "test"

        [[plugin]]
        id = "model"
        use = "plug_provider"
        config = { sise = 3, models = "m1" }
        [[plugin]]
        id = "shape"
        use = "plug_shapeless"
        [[plugin]]
        id = "missing"
        use = "plug_nowhere"
        [[plugin]]
        id = "needs"
        use = "plug_needs"
        """
    )

    assert problems(file) == [
        ("agent.toml: plugin 'model': config: models: Input should be a valid list"),
        "agent.toml: plugin 'model': config: sise: Extra inputs are not permitted",
        "agent.toml: plugin 'shape': 'plug_shapeless' is no plugin: it lacks Config, apply",
        (
            "agent.toml: plugin 'missing': no plugin and no module is named 'plug_nowhere' "
            "(plugins: none)"
        ),
        (
            "agent.toml: plugin 'needs': needs the service 'weather'; "
            "there is config, directory, llm, tools"
        ),
    ]


@pytest.mark.usefixtures("plugins")
def test_plugin_that_fails_is_a_problem_and_what_was_done_is_undone(
    write: Write, log: list[str]
) -> None:
    file = write(PROVIDER + '[[plugin]]\nid = "bad"\nuse = "plug_broken"\n')

    assert problems(file) == ["agent.toml: plugin 'bad': no luck today"]
    assert log == ["applied", "disposed"]


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[agent]\nprovider = "other"\n',
            "agent.toml: agent.provider: no provider is named 'other'; there is none",
        ),
        (
            PROVIDER.replace('"m1"', '"m9"', 1),
            "agent.toml: agent.model: 'test' has no 'm9'; it has 'm1'",
        ),
        (
            "[agent]\npermision_mode = 1\n",
            (
                "agent.toml: agent.permision_mode: unknown key 'permision_mode'; "
                "did you mean 'permission_mode'?"
            ),
        ),
        (
            "[agent.compaction]\nthreshhold = 0.5\n",
            (
                "agent.toml: agent.compaction.threshhold: unknown key 'threshhold'; "
                "did you mean 'threshold'?"
            ),
        ),
        (
            "[agnt]\n",
            "agent.toml: agnt: unknown key 'agnt'; did you mean 'agent'?",
        ),
        (
            "[zzz]\n",
            "agent.toml: zzz: unknown key 'zzz'; the keys are agent, log, plugin",
        ),
        (
            '[[plugin]]\nid = "a"\nuse = "plug_provider"\nuze = 1\n',
            "agent.toml: plugin.0.uze: unknown key 'uze'; did you mean 'use'?",
        ),
        (
            '[[plugin]]\nid = "a"\nuse = "x"\n[[plugin]]\nid = "a"\nuse = "y"\n',
            "agent.toml: two plugins have the id 'a'",
        ),
        ("[agent\n", "agent.toml: is not TOML: Expected ']' at the end of a table declaration"),
        ('[[patch]]\nid = "a"\n', "agent.toml: 'patch' and 'insert' need an 'extends' to apply to"),
        ('extends = "none.toml"\n', "none.toml: can't be read: No such file or directory"),
    ],
)
def test_problem_says_where_and_what(write: Write, text: str, problem: str) -> None:
    assert problems(write(text))[0].startswith(problem)


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[[patch]]\nid = "modle"\n',
            "over.toml: patch 'modle' matches no plugin; did you mean 'model'?",
        ),
        (
            '[[patch]]\nid = "zzz"\n',
            "over.toml: patch 'zzz' matches no plugin (there is ['model'])",
        ),
        (
            '[[patch]]\nid = "model"\ndisable = true\n',
            "over.toml: patch 'model': unknown key 'disable'; did you mean 'disabled'?",
        ),
        (
            "[[inserts]]\n",
            "over.toml: unknown key 'inserts'; did you mean 'insert'?",
        ),
    ],
)
def test_overlay_that_changes_nothing_known_is_a_problem(
    write: Write, text: str, problem: str
) -> None:
    write(PROVIDER)

    assert problem in problems(write(f'extends = "agent.toml"\n{text}', "over.toml"))


@pytest.mark.usefixtures("plugins")
def test_handler_in_front_makes_any_provider_do(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_front(context: Context, _config: Config) -> None:
        context.service("llm").use(lambda _request: None)

    monkeypatch.setattr(sys.modules["plug_weather"], "apply", in_front)

    compose(write('[[plugin]]\nid = "replay"\nuse = "plug_weather"\n'))


def test_replay_picks_the_overlay_beside_the_file(write: Write) -> None:
    file = write("")
    replay = {"DSH_SNAPSHOT": "replay"}

    with pytest.raises(ConfigError) as caught:
        pick(file, replay)
    assert str(caught.value) == (
        f"{file.with_name('agent.snapshot.toml')}: there is no such overlay, "
        "and DSH_SNAPSHOT is 'replay'\n"
        "  hint: let it extend the composition, with llm-replay for the provider"
    )

    overlay = write("", "agent.snapshot.toml")
    assert pick(file, replay) == overlay
    assert pick(overlay, replay) == overlay
    assert pick(file, {"DSH_SNAPSHOT": "record"}) == file
    assert pick(file, {}) == file


def test_state_is_kept_where_the_user_keeps_it() -> None:
    assert state_root({"XDG_STATE_HOME": "/state"}) == Path("/state/acp-example")
    assert state_root({"HOME": "/home/me"}) == Path("/home/me/.local/state/acp-example")


def test_problems_of_a_plugin_that_validates_itself_are_told_one_by_one(write: Write) -> None:
    file = write(
        '[[plugin]]\nid = "r"\nuse = "llm_replay.plugin"\nconfig = { fil = 1, paceMs = -1 }\n'
    )

    places = [problem.split(": ")[:4] for problem in problems(file)]
    where = ["agent.toml", "plugin 'r'", "config"]
    assert places == [[*where, "paceMs"], [*where, "fil"]]
