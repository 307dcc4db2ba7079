import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it brings none
import pytest
from kit import HELLO, add_scenario, make_suite

from snapshot_harness.__main__ import main
from snapshot_harness.schemas import FOLDER, schemas, stale, write_schemas


def test_the_committed_schemas_are_what_the_models_say() -> None:
    assert stale() == []


def test_schemas_are_written_where_they_are_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schemas", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(schemas())
    assert write_schemas(tmp_path) == []
    (tmp_path / "input.schema.json").write_text("{}")
    capsys.readouterr()

    assert main(["schemas", "--check", str(tmp_path)]) == 1
    assert capsys.readouterr().out == (
        f"{tmp_path}/input.schema.json: not what the models say; run `snapshot-harness schemas`\n"
    )
    assert main(["schemas", str(tmp_path)]) == 0
    assert main(["schemas", "--check", str(tmp_path)]) == 0


@pytest.mark.parametrize("name", sorted(schemas()))
def test_a_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads((FOLDER / name).read_text()))


def test_an_editor_accepts_what_the_readers_accept(tmp_path: Path) -> None:
    scenario = add_scenario(make_suite(tmp_path), steps=HELLO, answers=[{"kind": "hold"}])
    schema = json.loads((FOLDER / "input.schema.json").read_text())
    value = json.loads((scenario.directory / "input.json").read_text())

    jsonschema.validate(value, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"steps": [{"op": "promt", "text": "x"}]}, schema)
