"""JSON Schemas of the files that people write, for editors; generated, committed, checked."""

import json
from collections.abc import Mapping
from pathlib import Path

import pydantic

from snapshot_harness.steps import Script
from snapshot_harness.suite import ScenarioFile, SuiteFile

FOLDER = Path(__file__).with_name("schemas")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS: Mapping[str, type[pydantic.BaseModel]] = {
    "suite.schema.json": SuiteFile,
    "scenario.schema.json": ScenarioFile,
    "input.schema.json": Script,
}


def schemas() -> dict[str, str]:
    """Return the text of each schema by its file's name."""
    return {name: _text(model) for name, model in _MODELS.items()}


def stale(folder: Path = FOLDER) -> list[Path]:
    """Return the committed schemas that are not what the models say."""
    return [
        folder / name
        for name, text in schemas().items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text
    ]


def write_schemas(folder: Path = FOLDER) -> list[Path]:
    """Write the schemas that are stale, and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = stale(folder)
    for path in changed:
        path.write_text(schemas()[path.name], "utf-8")
    return changed


def _text(model: type[pydantic.BaseModel]) -> str:
    schema = {"$schema": _DIALECT, **model.model_json_schema(by_alias=True)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
