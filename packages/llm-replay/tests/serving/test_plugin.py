import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from replay_kit import Request, Runtime, collect, text_call, texts, write_log

from llm_replay import plugin
from llm_replay.config import ReplayConfig
from llm_replay.exceptions import ConfigError, ReplayError


class Context:
    """A host that loads plugins by name and offers the services they inject."""

    def __init__(self, runtime: Runtime) -> None:
        self.services: dict[str, Any] = {"llm": runtime}

    def service(self, name: str, /) -> Any:  # noqa: ANN401  a service of any kind
        return self.services[name]

    def load(self, module: ModuleType, table: object) -> Callable[[], None]:
        assert set(module.inject) <= self.services.keys()
        undo: Callable[[], None] = module.apply(self, module.Config.parse(table))
        return undo


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FILE", "OVERRIDE", "CHILD_FILES", "VERDICT_DIR"):
        monkeypatch.delenv(f"DSH_SNAPSHOT_{name}", raising=False)


def test_the_plugin_has_the_shape_of_every_plugin() -> None:
    assert (plugin.name, plugin.inject) == ("llm-replay", ("llm",))
    assert isinstance(plugin.Config.parse({}), ReplayConfig)


def test_the_plugin_serves_what_the_environment_names(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "session.jsonl", text_call("hello"))
    monkeypatch.setenv("DSH_SNAPSHOT_FILE", str(log))
    undo = Context(runtime).load(plugin, {"providers": [{"id": "deep", "models": [{"id": "m"}]}]})

    stream = runtime.providers["deep"].stream(Request())
    assert texts(asyncio.run(collect(stream))) == ["hello"]
    undo()
    assert runtime.providers == {}


def test_the_plugin_serves_what_its_table_names(runtime: Runtime, tmp_path: Path) -> None:
    log = write_log(tmp_path / "session.jsonl", text_call("hello"))
    undo = Context(runtime).load(plugin, {"file": str(log)})

    assert texts(asyncio.run(collect(runtime.stream(Request())))) == ["hello"]
    undo()
    assert runtime.handlers == []


def test_a_wrong_table_is_refused_when_it_is_read() -> None:
    with pytest.raises(ConfigError, match="fiel: is not a key of this table; did you mean 'file'"):
        plugin.Config.parse({"fiel": "x"})


def test_a_plugin_that_nobody_told_a_file_says_how_to(runtime: Runtime) -> None:
    with pytest.raises(ReplayError, match="DSH_SNAPSHOT_FILE"):
        Context(runtime).load(plugin, {})
