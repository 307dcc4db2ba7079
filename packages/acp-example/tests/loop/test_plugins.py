"""Plugins are found by name, and told what there is."""

import tomllib
import types
from pathlib import Path

import pytest

from acp_example.plugins import GROUP, Context, find


def test_plugin_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "fancy"

        def load(self) -> object:
            return types.SimpleNamespace(name="f", inject=(), Config=dict, apply=print)

    def points(**wanted: str) -> list[Point]:
        return [Point()] if wanted.get("name", "fancy") == "fancy" else []

    monkeypatch.setattr("acp_example.plugins.entry_points", points)

    assert find("fancy").name == "f"
    with pytest.raises(LookupError, match=r"named 'fency' \(plugins: 'fancy'\)"):
        find("fency")


def test_built_in_plugins_have_names_of_their_own() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    points = project["project"]["entry-points"][GROUP]

    assert {name: find(module).name for name, module in points.items()} == {
        "chat-completions": "chat-completions",
        "executor": "executor",
        "tools": "tools",
    }


def test_module_that_lacks_an_import_of_its_own_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plug_incomplete.py").write_text("import not_installed_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(LookupError, match="can't be imported: No module named 'not_installed"):
        find("plug_incomplete")


@pytest.mark.parametrize("target", ["", "no.such.module", ".relative"])
def test_target_that_is_nothing_is_a_lookup_error(target: str) -> None:
    with pytest.raises(LookupError):
        find(target)


def test_context_tells_what_it_has() -> None:
    context = Context(llm=1)
    context.provide("b", 2)

    assert context.names == ["b", "llm"]
    assert "b" in context
    assert context["llm"] == context.service("llm") == 1
