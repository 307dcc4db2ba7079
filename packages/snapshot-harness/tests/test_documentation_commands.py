"""The page on commands says what the commands say."""

import dataclasses
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from documentation import ROOT
from reference_tables import REFERENCE, code, first_column

from snapshot_harness.causes import Cause
from snapshot_harness.report import Report
from snapshot_harness.run_report import RunReport


def test_each_key_of_the_report_is_explained() -> None:
    told = first_column("commands.md", "### The report")

    assert told == [field.name for field in dataclasses.fields(Report)]


def test_each_key_of_a_cause_is_explained() -> None:
    told = first_column("commands.md", "### A cause in the report")

    assert sorted(told) == sorted(field.name for field in dataclasses.fields(Cause))


def test_the_report_as_a_whole_is_explained(tmp_path: Path) -> None:
    RunReport(mode="replay").write(tmp_path / "report.json")
    page = (REFERENCE / "commands.md").read_text("utf-8").partition("### The report")[2]

    assert code(page.split("\n\n")[1])[1:8] == list(
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

    assert set(first_column("commands.md", "## pytest")[:6]) == ours


def test_each_option_of_the_example_agent_is_explained() -> None:
    told = {name for name in first_column("commands.md", "## acp-example") if name[:2] == "--"}

    assert told == options_of("acp_example")


@pytest.mark.parametrize(
    ("module", "program", "command"),
    [
        ("snapshot_harness", "snapshot-harness", "init"),
        ("snapshot_harness", "snapshot-harness", "new"),
        ("snapshot_harness", "snapshot-harness", "review"),
        ("snapshot_harness", "snapshot-harness", "smoke"),
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
