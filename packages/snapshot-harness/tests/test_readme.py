"""The README names every key, every operation, and only tests that exist."""

import re
from pathlib import Path
from typing import Any, get_args

import pydantic
import pytest

from snapshot_harness.steps import AnyStep, PermissionAnswer, Script
from snapshot_harness.suite import (
    Capabilities,
    Deadlines,
    NormalizationRule,
    RecordSettings,
    ScenarioFile,
    SuiteFile,
)

TESTS = Path(__file__).parent
README = (TESTS.parent / "README.md").read_text()
MODELS: list[type[pydantic.BaseModel]] = [
    SuiteFile,
    Capabilities,
    Deadlines,
    NormalizationRule,
    RecordSettings,
    ScenarioFile,
    Script,
    PermissionAnswer,
]
KEYS = sorted(
    {field.alias or name for model in MODELS for name, field in model.model_fields.items()}
    - {"$schema"}
)
STEPS: tuple[Any, ...] = get_args(get_args(AnyStep)[0])
OPERATIONS = [step.model_fields["op"].default for step in STEPS]


@pytest.mark.parametrize("word", [*KEYS, *OPERATIONS])
def test_the_readme_names_every_key_and_operation(word: str) -> None:
    assert f"`{word}`" in README


def test_the_readme_names_only_tests_that_exist() -> None:
    source = "".join(path.read_text() for path in TESTS.glob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", README)

    assert len(named) > 20
    assert [name for name in named if f"def {name}(" not in source] == []
