import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import orjson
import pytest
from replay_kit import schema_problems

from llm_replay import plugin
from llm_replay.verdict import VERDICT_SCHEMA

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
SHOWN_ONLY = ("pip install",)


def blocks(kind: str) -> list[str]:
    return [body for language, body in BLOCKS if language == kind]


@pytest.fixture
def workbench(tmp_path: Path) -> Path:
    """A directory with every file that the README writes."""
    for body in blocks("python"):
        name = body.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(body)
    return tmp_path


def run(command: str, directory: Path) -> str:
    program, *arguments = command.split()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    line = [sys.executable if program == "python" else program, *arguments]
    done = subprocess.run(  # noqa: S603  the README's own commands
        line,
        cwd=directory,
        env={**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:randomly"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_command_prints_what_the_readme_says(workbench: Path) -> None:
    shown = "".join(blocks("console"))
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", shown, re.MULTILINE)

    assert len(commands) >= 4
    for command, expected in commands:
        if not command.startswith(SHOWN_ONLY):
            printed = re.sub(r" +\[100%\]| in [\d.]+s", "", run(command, workbench))
            assert expected in printed, command


def test_every_program_of_the_readme_runs(workbench: Path) -> None:
    for name in ("my_agent.py", "record.py", "replay.py", "catalogue.py"):
        run(f"python {name}", workbench)


def test_the_table_of_the_readme_is_a_configuration() -> None:
    [table] = [tomllib.loads(body) for body in blocks("toml")]

    config = plugin.Config.parse(table["config"])
    assert (config.file, config.pace_ms, len(config.providers[0].models)) == (
        "session.jsonl",
        20,
        2,
    )


def test_the_facts_of_the_readme_are_facts() -> None:
    schema = orjson.loads(VERDICT_SCHEMA.read_bytes())
    lines = "".join(blocks("json")).splitlines()

    assert len(lines) == 4
    assert [schema_problems(schema, orjson.loads(line)) for line in lines] == [[]] * 4
