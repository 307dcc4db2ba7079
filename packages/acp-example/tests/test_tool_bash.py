import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from workspace import Workspace

from acp_example.tools import Execution
from acp_example.tools.bash import Bash

OUT = "it leads out of the workspace {cwd!r}"


@dataclass
class Pretended:
    """An executor that runs nothing."""

    execution: Execution
    asked: dict[str, Any] = field(default_factory=dict)

    async def run(
        self, command: str, *, cwd: Path, environment: Mapping[str, str], timeout_s: float | None
    ) -> Execution:
        self.asked = {
            "command": command,
            "cwd": cwd,
            "environment": environment,
            "timeout_s": timeout_s,
        }
        return self.execution


def ended(exit_code: int = 0, stdout: str = "", stderr: str = "") -> Pretended:
    return Pretended(Execution(exit_code=exit_code, stdout=stdout, stderr=stderr))


def test_bash_reports_exit_code_and_both_streams(ws: Workspace) -> None:
    ws.file("src/x")

    result = ws.run(Bash(), command="echo out; echo err >&2; pwd", workdir="src")

    assert result.text == f"exit code: 0\nstdout:\nout\n{ws.cwd}/src\nstderr:\nerr"
    assert result.is_error is False
    assert result.truncated is False
    assert result.details == {"exitCode": 0, "workdir": "src"}


def test_nonzero_exit_is_not_tool_error(ws: Workspace) -> None:
    ws.executor = ended(exit_code=3)

    result = ws.run(Bash(), command="exit 3")

    assert result.is_error is False
    assert result.text == "exit code: 3"
    assert result.details == {"exitCode": 3, "workdir": "."}


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [(-9, "killed by SIGKILL"), (-15, "killed by SIGTERM"), (-200, "killed by signal 200")],
)
def test_bash_names_the_signal_that_ended_it(ws: Workspace, exit_code: int, text: str) -> None:
    ws.executor = ended(exit_code=exit_code)

    assert ws.run(Bash(), command="x").text == text


def test_bash_hands_the_executor_what_it_needs(ws: Workspace) -> None:
    ws.executor = ended()
    ws.environment = {"PATH": "/bin"}

    ws.run(Bash(), command="x")
    assert ws.executor.asked == {
        "command": "x",
        "cwd": ws.cwd,
        "environment": {"PATH": "/bin"},
        "timeout_s": 120,
    }
    ws.run(Bash(), command="x", timeout_s=7)
    assert ws.executor.asked["timeout_s"] == 7


def test_nothing_carries_over_to_the_next_command(ws: Workspace) -> None:
    ws.run(Bash(), command="cd /; X=1; export X; alias ls=rm")

    assert ws.run(Bash(), command="pwd; echo ${X:-unset}").text == (
        f"exit code: 0\nstdout:\n{ws.cwd}\nunset"
    )


def test_a_command_that_takes_too_long_is_a_result(ws: Workspace) -> None:
    assert ws.error(Bash(), command="echo so far; sleep 600", timeout_s=0.1) == (
        "Error [TIMEOUT]: the command was stopped after 0.1 s; it wrote\nso far"
    )


def test_a_cancelled_command_gives_back_what_it_wrote(ws: Workspace) -> None:
    mark = ws.cwd / "mark"

    async def scenario() -> Any:  # noqa: ANN401  what the tool returned
        task = asyncio.ensure_future(
            Bash().run({"command": "echo so far; touch mark; sleep 600"}, ws.context())
        )
        while not mark.exists():  # noqa: ASYNC110  the command is another process
            await asyncio.sleep(0.005)
        task.cancel()
        return await task

    assert asyncio.run(scenario()).text == "killed by SIGKILL\nstdout:\nso far"


def test_oversized_output_is_truncated_once_with_notice(ws: Workspace) -> None:
    whole = "".join(f"{number} é\n" for number in range(1, 5000))
    ws.executor = ended(stdout=whole, stderr="short\n")

    result = ws.run(Bash(), command="x")

    path = ws.spill / "1-2.1.1/3.1.2-bash-stdout.txt"
    marker = (
        f"[the middle of {len(whole.encode())} bytes is left out here; "
        f"read {str(path)!r} for all of it]"
    )
    status, _, stdout = result.text.partition("\nstdout:\n")
    stdout, _, stderr = stdout.partition("\nstderr:\n")
    assert (status, stderr) == ("exit code: 0", "short")
    assert stdout.count(marker) == 1
    assert len(stdout.encode()) <= 10_240
    assert stdout.count("\n") < 256
    assert stdout.startswith("1 é\n2 é\n")
    assert stdout.endswith("\n4999 é")
    assert result.truncated is True
    assert path.read_text() == whole
    assert not path.with_name("3.1.2-bash-stderr.txt").exists()


def test_output_just_within_bounds_is_not_cut(ws: Workspace) -> None:
    ws.executor = ended(stdout="x" * 10_240, stderr="\n" * 256)

    result = ws.run(Bash(), command="x")

    assert result.truncated is False
    assert not ws.spill.exists()


def test_the_path_of_spilled_output_counts_against_the_budget(ws: Workspace) -> None:
    ws.executor = ended(stdout="x" * 20_000)
    short = ws.run(Bash(), command="x").text
    ws.spill = ws.spill / ("deeper/" * 8)
    long = ws.run(Bash(), command="x").text

    assert len(long.encode()) == len(short.encode())
    assert long.count("x") < short.count("x")


def test_without_a_place_for_it_the_rest_is_gone(ws: Workspace) -> None:
    ws.spills = False
    ws.executor = ended(stderr="x" * 20_000)

    text = ws.run(Bash(), command="x").text

    assert "\n[the middle of 20000 bytes is left out here]\n" in text


def test_output_that_the_executor_dropped_counts_as_truncated(ws: Workspace) -> None:
    ws.executor = Pretended(Execution(exit_code=0, stdout="", stderr="", truncated=True))

    assert ws.run(Bash(), command="x").truncated is True


@pytest.mark.parametrize(
    ("workdir", "message"),
    [
        (
            "..",
            "PATH_OUTSIDE_ALLOWED_ROOT]: cannot read '..': it leads out of the workspace {cwd!r}",
        ),
        (
            "out",
            "PATH_OUTSIDE_ALLOWED_ROOT]: cannot read 'out': it leads out of the workspace {cwd!r}",
        ),
        ("none", "PATH_NOT_FOUND]: there is no 'none'"),
        ("file", "NOT_A_DIRECTORY]: 'file' is a file"),
    ],
)
def test_bash_runs_inside_the_workspace_only(ws: Workspace, workdir: str, message: str) -> None:
    ws.executor = ended()
    (ws.cwd / "out").symlink_to("..")
    ws.file("file")

    assert ws.error(Bash(), command="x", workdir=workdir) == (
        f"Error [{message.format(cwd=str(ws.cwd))}"
    )
    assert ws.executor.asked == {}
