"""The reference says what the code says: keys, operations, options, variables, texts."""

import ast
import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import get_args

import pydantic
import pytest
from documentation import DOCS, ROOT

from llm_replay import VERDICT_SCHEMA, rounds
from llm_replay.chunks import CHUNK_TYPES
from llm_replay.packing import PACKED
from snapshot_harness import steps, suite
from snapshot_harness.environment import PASSED_ON
from snapshot_harness.modes import Mode
from snapshot_harness.report import Report
from snapshot_harness.run_report import RunReport

REFERENCE = DOCS / "reference"
SOURCES = [
    path
    for package in ("llm-replay", "snapshot-harness", "acp-example")
    for path in (ROOT / "packages" / package / "src").rglob("*.py")
]
CODE = re.compile(r"`` ?(.+?) ?``|`([^`]+)`")


def table(page: str, heading: str) -> list[list[str]]:
    """Return the rows of all tables between a heading and the next one, without their heads."""
    text = "\n" + (REFERENCE / page).read_text("utf-8")
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"{page} has no {heading!r}"
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith("| ---"):
            rows.pop()
        elif line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def code(cell: str) -> list[str]:
    """Return what stands in a cell as code."""
    return [match[1] or match[2] for match in CODE.finditer(cell)]


def first_column(page: str, heading: str) -> list[str]:
    """Return the names that a table explains."""
    return [code(row[0])[0] for row in table(page, heading) if code(row[0])]


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


def test_each_key_of_the_report_is_explained() -> None:
    told = first_column("commands.md", "### The report")

    assert told == [field.name for field in dataclasses.fields(Report)]


def test_the_report_as_a_whole_is_explained(tmp_path: Path) -> None:
    RunReport(mode="replay").write(tmp_path / "report.json")
    page = (REFERENCE / "commands.md").read_text("utf-8").partition("### The report")[2]

    assert code(page.split("\n\n")[1])[1:6] == list(
        json.loads((tmp_path / "report.json").read_text())
    )


@cache
def options_of(*command: str) -> set[str]:
    """Return the long options that a command's help names."""
    done = subprocess.run(  # noqa: S603  our own commands
        [sys.executable, "-m", *command, "--help"], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z][\w-]*)", done.stdout, re.MULTILINE)) - {"--help"}


def test_each_option_of_pytest_is_explained_and_no_other() -> None:
    ours = {name for name in options_of("pytest") if name.startswith("--snapshot")}

    assert set(first_column("commands.md", "## pytest")[:5]) == ours


def test_each_option_of_the_example_agent_is_explained() -> None:
    told = {name for name in first_column("commands.md", "## acp-example") if name[:2] == "--"}

    assert told == options_of("acp_example")


@pytest.mark.parametrize(
    ("module", "program", "command"),
    [
        ("snapshot_harness", "snapshot-harness", "init"),
        ("snapshot_harness", "snapshot-harness", "new"),
        ("snapshot_harness", "snapshot-harness", "review"),
        ("snapshot_harness", "snapshot-harness", "schemas"),
        ("llm_replay", "llm-replay", "show"),
        ("llm_replay", "llm-replay", "check"),
        ("llm_replay", "llm-replay", "pack"),
    ],
)
def test_each_option_of_a_command_is_explained(module: str, program: str, command: str) -> None:
    told = {
        name
        for name in first_column("commands.md", f"### {program} {command}")
        if name.startswith("--")
    }

    assert told == options_of(module, command)


def test_each_session_of_nox_is_explained() -> None:
    defined = re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE)
    told = first_column("commands.md", "## nox")

    sessions = [name for name in defined if f"\ndef {name}(" in decorated()]
    assert sorted(told) == sorted(sessions)


def decorated() -> str:
    """Return the noxfile's functions that are sessions."""
    text = (ROOT / "noxfile.py").read_text("utf-8")
    return "".join(re.findall(r"@nox\.session(?:\([^)]*\))?(\ndef \w+\()", text))


def templates(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the texts of a source, `…` in place of what is filled in."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = template(node)
            if text:
                yield text


def template(node: ast.AST | None) -> str:
    """Return the text that an expression makes, if it is one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.Constant) else "…" for one in node.values]
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.BinOp):
        return (template(node.left) or "…") + (template(node.right) or "…")
    return ""


def is_told(text: str, texts: Iterable[str]) -> bool:
    """Tell whether the words of a documented text stand in one of the texts, in order."""
    words = [part.strip() for part in text.split("…") if part.strip(" :;,()")]
    pattern = re.compile(".*".join(map(re.escape, words)))
    return any(pattern.search(one) for one in texts)


def documented_errors() -> list[str]:
    """Return every text of the page on errors."""
    lines = (REFERENCE / "errors.md").read_text("utf-8").splitlines()
    return [code(line)[0] for line in lines if line.startswith("| `")]


def test_each_documented_error_is_one_that_can_come() -> None:
    texts = [text.split("\n")[0] for text in templates(SOURCES)]

    assert [text for text in documented_errors() if not is_told(text, texts)] == []


def test_each_problem_of_a_guard_is_documented() -> None:
    harness = ROOT / "packages/snapshot-harness/src/snapshot_harness"
    found = set()
    for path in harness.glob("guards*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "what":
                found.add(template(node.value))
    documented = documented_errors()

    assert {text for text in found if text and not is_told(text, documented)} == set()
