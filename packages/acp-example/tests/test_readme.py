"""What the README says of keys, compositions and plugins is true."""

import asyncio
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel
from workspace import Workspace

from acp_example import builtin, executor
from acp_example.composition import compose
from acp_example.config import AgentTable, CompactionTable, LogTable, PluginTable
from acp_example.provider import Config as ProviderConfig
from acp_example.provider.config import Model, Retry

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")

IN_WORDS = {"see below", "all of them", "two of DeepSeek's", "required", "none"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def documented_after(heading: str) -> dict[str, str]:
    """Return keys and defaults of the first table after a line."""
    _, _, rest = README.partition(f"\n{heading}")
    table = rest[rest.index("| key |") :].split("\n\n", 1)[0]
    return {
        key: default.strip("`") for key, default in re.findall(r"\| `(\w+)` \| (.+?) \|", table)
    }


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("### `[agent]`", AgentTable),
        ("### `[agent.compaction]`", CompactionTable),
        ("### `[log]`", LogTable),
        ("### `[[plugin]]`", PluginTable),
        ("### The provider", ProviderConfig),
        ("Each of `models`:", Model),
        ("`retry`:", Retry),
        ("### The tools", builtin.Config),
        ("### The executor", executor.Config),
    ],
)
def test_every_configuration_key_is_documented(heading: str, model: type[BaseModel]) -> None:
    documented = documented_after(heading)

    assert list(documented) == list(model.model_fields)
    for key, field in model.model_fields.items():
        said = documented[key]
        assert (said == "required") == field.is_required()
        assert said != "none" or field.default is None
        if said not in IN_WORDS:
            default = field.get_default(call_default_factory=True)
            plain = list(default) if isinstance(default, tuple) else default
            assert tomllib.loads(f"x = {said}")["x"] == plain


@pytest.mark.parametrize("block", [0, 1])
def test_the_compositions_of_the_first_minutes_load(tmp_path: Path, block: int) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(blocks("toml")[block])

    composition = compose(file)

    assert len(composition.tools.all()) == 8
    composition.dispose()


def test_the_overlay_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, overlay, _ = blocks("toml")
    (tmp_path / "agent.toml").write_text(first)
    (tmp_path / "agent.snapshot.toml").write_text(overlay)
    (tmp_path / "session.jsonl").write_text(
        '{"type":"session","version":1,"id":"s","createdAt":0,"delegationDepth":0}\n'
    )
    monkeypatch.setenv("DSH_SNAPSHOT_FILE", str(tmp_path / "session.jsonl"))
    for name in ("CHILD_FILES", "OVERRIDE", "VERDICT_DIR"):
        monkeypatch.delenv(f"DSH_SNAPSHOT_{name}", raising=False)

    composition = compose(tmp_path / "agent.snapshot.toml")

    assert composition.agent.permission_mode == "read-only"
    assert list(composition.llm.providers) == ["deepseek"]
    composition.dispose()


@pytest.fixture
def dice(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  a module of the README's
    module = ModuleType("dice")
    exec(blocks("python")[0], module.__dict__)  # noqa: S102  our own page
    monkeypatch.setitem(sys.modules, "dice", module)
    return module


def test_the_tool_of_the_readme_works(ws: Workspace, dice: Any) -> None:  # noqa: ANN401  as above
    first, _, _, listed = blocks("toml")
    file = ws.file("agent.toml", first + listed)

    composition = compose(file)
    tool = composition.tools.get("roll")

    assert tool is not None
    assert tool.spec.title({"dice": 2}) == "Roll 2 dice"
    shown = asyncio.run(tool.run({"dice": 50}, ws.context())).text.split()
    assert len(shown) == 50
    assert all(1 <= int(pips) <= 20 for pips in shown)
    assert ws.error(dice.Roll(6), dice=101) == "Error [TOO_MANY]: the table holds 100 dice"
    composition.dispose()
