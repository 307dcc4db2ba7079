"""The reference says what the code says: keys, operations, variables, facts; its examples hold."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from types import FunctionType
from typing import get_args

import pydantic
import pytest
from documentation import ROOT
from reference_tables import REFERENCE, code, examples, first_column, table

from llm_replay import VERDICT_SCHEMA, derive_calls, parse_override, read_session_log, rounds
from llm_replay.chunks import CHUNK_TYPES
from llm_replay.config import parse_config
from llm_replay.packing import PACKED
from llm_replay.tokens import Roots
from snapshot_harness import steps, suite
from snapshot_harness.environment import PASSED_ON
from snapshot_harness.modes import Mode

SOURCES = [
    path
    for package in ("llm-replay", "snapshot-harness", "acp-example")
    for path in (ROOT / "packages" / package / "src").rglob("*.py")
]


def keys(model: type[pydantic.BaseModel]) -> list[str]:
    """Return a model's keys as a person writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


MODELS: list[tuple[str, str, type[pydantic.BaseModel]]] = [
    ("scenario-files.md", "## suite.toml", suite.SuiteFile),
    ("scenario-files.md", "### capabilities", suite.Capabilities),
    ("scenario-files.md", "### rule", suite.NormalizationRule),
    ("scenario-files.md", "### deadlines", suite.Deadlines),
    ("scenario-files.md", "### record", suite.RecordSettings),
    ("scenario-files.md", "## scenario.toml", suite.ScenarioFile),
    ("operations.md", "# Operations of input.json", steps.Script),
    ("operations.md", "## Permission answers", steps.PermissionAnswer),
]


@pytest.mark.parametrize(("page", "heading", "model"), MODELS)
def test_each_key_is_explained_and_no_other(
    page: str, heading: str, model: type[pydantic.BaseModel]
) -> None:
    assert first_column(page, heading) == keys(model)


@pytest.mark.parametrize(("page", "heading", "model"), MODELS)
def test_a_key_that_must_be_there_is_called_required(
    page: str, heading: str, model: type[pydantic.BaseModel]
) -> None:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    for row in table(page, heading):
        name = code(row[0])[0]
        assert fields[name].is_required() == row[1].endswith("required"), f"{page}: {name}"


def test_defaults_are_those_of_the_models() -> None:
    for page, heading, model in MODELS[:6]:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        for name, type_, *_ in table(page, heading):
            default = fields[code(name)[0]].default
            told = re.search(r", `?([^`,]+)`?$", type_)
            if isinstance(default, (bool, int, float)) and told is not None:
                assert told[1] == (
                    str(default).lower() if type(default) is bool else f"{default:.0f}"
                )
            if isinstance(default, str) and default:
                assert code(type_)[0] == f'"{default}"', f"{page}: {name}"


def operations() -> dict[str, type[pydantic.BaseModel]]:
    """Return the operations by name."""
    union = get_args(steps.AnyStep)[0]
    return {model.model_fields["op"].default: model for model in get_args(union)}


def test_each_operation_is_explained_with_all_its_keys() -> None:
    told = {code(row[0])[0]: set(code(row[1])) for row in table("operations.md", "## Operations")}
    made = {}
    for name, model in operations().items():
        fields = {field.alias or key: field for key, field in model.model_fields.items()}
        del fields["op"]
        made[name] = {key + ("" if one.is_required() else "?") for key, one in fields.items()}

    assert told == made


def test_each_kind_of_permission_answer_is_explained() -> None:
    (kind,) = [row for row in table("operations.md", "## Permission answers") if "`kind`" in row[0]]

    assert set(code(kind[2])) == set(
        get_args(steps.PermissionAnswer.model_fields["kind"].annotation)
    )


def test_each_variable_of_the_contract_is_explained_and_no_other() -> None:
    told = first_column("environment.md", "## What the harness tells the agent")
    text = "\n".join(path.read_text("utf-8") for path in SOURCES)
    set_by_us = set(re.findall(r"DSH_SNAPSHOT(?:_[A-Z]+)*\b", text))

    assert {name for name in told if name.startswith("DSH_")} == set_by_us
    assert set(PASSED_ON) <= set(told)


def test_the_contract_names_the_same_variables() -> None:
    contract = (REFERENCE / "contract.md").read_text("utf-8")
    told = first_column("environment.md", "## What the harness tells the agent")

    assert [name for name in told if f"`{name}`" not in contract] == []


def test_each_mode_is_explained() -> None:
    (row,) = [row for row in table("commands.md", "## pytest") if "`--snapshot-mode`" in row[0]]

    assert set(code(row[1])) == {mode.value for mode in Mode}


def test_chunks_and_packed_rows_are_explained() -> None:
    assert first_column("session-log.md", "## Chunks")[: len(CHUNK_TYPES)] == list(CHUNK_TYPES)
    assert set(first_column("session-log.md", "## Packed rows")) == set(PACKED)


def test_each_token_that_is_served_is_explained() -> None:
    told = {name for row in table("contract.md", "## 4. The fixture") for name in code(row[0])}

    assert {"{{lit}}", *(f"{{{{{one.name}}}}}" for one in dataclasses.fields(Roots))} <= told


def test_each_fact_of_the_verdict_is_explained_with_its_keys() -> None:
    schema = json.loads(Path(VERDICT_SCHEMA).read_bytes())["$defs"]
    facts = {name: one for name, one in schema.items() if "fact" in one.get("properties", {})}
    told = {}
    for row in table("contract.md", "## 7. The verdict"):
        keys_told = re.findall(r'"(\w+)"(\??)', code(row[0])[0].partition(",")[2])
        name = re.search(r'"fact":"([\w-]+)"', row[0])
        assert name is not None
        told[name[1]] = {key: not optional for key, optional in keys_told}
    made = {
        name: {key: key in one["required"] for key in one["properties"] if key != "fact"}
        for name, one in facts.items()
    }
    made["installed"] |= {"file": True, "calls": True}

    assert told == made
    kinds = facts["fault"]["properties"]["kind"]["enum"]
    assert [
        kind
        for kind in kinds
        if f"`{kind}`" not in table("contract.md", "## 7. The verdict")[-1][1]
    ] == []


@pytest.mark.parametrize(
    ("heading", "reader"),
    [
        ("# Configuration of replay", "_read_config"),
        ("## providers", "_read_provider"),
        ("## models", "_read_model"),
        ("## retryPolicy", "_read_retry_policy"),
        ("### backoff", "_read_backoff"),
    ],
)
def test_each_key_of_replay_is_explained_and_no_other(heading: str, reader: str) -> None:
    source = (ROOT / "packages/llm-replay/src/llm_replay/config.py").read_text("utf-8")
    body = source.partition(f"def {reader}(")[2].partition("\ndef ")[0]
    read = re.findall(r'fields\.(?!problem|unique)\w+\(\s*"(\w+)"', body)

    assert set(first_column("replay-config.md", heading)) == set(read)


def test_each_builder_of_the_scripted_model_is_explained() -> None:
    told = first_column("../how-to/in-process-tests.md", "## What the model says")
    ours = [one for one in vars(rounds).values() if isinstance(one, FunctionType)]
    named = [one.__name__ for one in ours if one.__module__ == rounds.__name__]
    builders = [name for name in named if name[0] != "_" and name != "as_entry"]

    assert sorted(name.partition("(")[0] for name in told) == sorted(builders)


def test_examples_of_steps_are_taken() -> None:
    for text in examples("operations.md", "json"):
        example = json.loads(text)
        pydantic.TypeAdapter(steps.Script).validate_python(
            example if "steps" in example else {"steps": [example]}
        )


def test_examples_of_overrides_rules_and_configurations_are_taken() -> None:
    (override,) = examples("scenario-files.md", "json")
    (rules,) = examples("scenario-files.md", "toml")
    (config,) = examples("replay-config.md", "toml")

    assert set(parse_override(override, where="the example")) == {0}
    assert suite.SuiteFile.model_validate({"command": ["x"], **tomllib.loads(rules)}).rule
    assert parse_config(tomllib.loads(config)["plugin"][0]["config"]).providers


def test_examples_of_logs_are_read() -> None:
    header, chunks, packed = examples("session-log.md", "json")
    rows = [
        json.dumps({"type": "assistant/chunk", "data": {"turn": 1, "step": 1, "chunk": chunk}})
        for chunk in map(json.loads, chunks.splitlines())
    ]
    (call,) = derive_calls(read_session_log(header + "\n".join(rows)).events)

    assert call.entry is not None
    assert len(read_session_log(header + packed).events) == 6
