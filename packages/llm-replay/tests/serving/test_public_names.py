import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import llm_replay

PUBLIC: list[str] = vars(llm_replay)["__all__"]
HOMES: dict[str, str] = vars(llm_replay)["_HOME_OF"]


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, llm_replay; heavy = {'asyncio', 'pydantic', 'regex', 'orjson', 'httpx'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # noqa: S603  our own interpreter

    assert told.stdout == b"[]\n"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(llm_replay, name) is not None
    assert name in dir(llm_replay)


def test_the_stub_names_what_the_package_offers() -> None:
    stub = Path(llm_replay.__file__).with_name("__init__.pyi")
    told = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(stub.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert told == {name: f"llm_replay.{home}.{name}" for name, home in HOMES.items()}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'llm_replay' has no attribute 'nothing'"):
        getattr(llm_replay, "nothing")  # noqa: B009  a type checker knows that it isn't there


def test_no_public_name_is_that_of_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(llm_replay.__path__)}

    # A module, once imported, takes its name in the package: the public one would be gone.
    assert modules.isdisjoint(PUBLIC)
