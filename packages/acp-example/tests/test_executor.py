"""Commands really run here; what they leave behind is looked for with a pipe they hold open."""

import asyncio
import os
import random
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_example.exceptions import ToolError
from acp_example.executor import Capture, Config, ShellExecutor, apply, child_environment
from acp_example.plugins import Context
from acp_example.tools import Execution

HERE = Path("/")


def run(
    command: str,
    *,
    cwd: Path = HERE,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = 30,
    **config: float,
) -> Execution:
    executor = ShellExecutor(Config.model_validate({"grace_s": 0.05, **config}))
    return asyncio.run(
        executor.run(
            command, cwd=cwd, environment=environment or dict(os.environ), timeout_s=timeout_s
        )
    )


def refusal(command: str, **options: Any) -> str:  # noqa: ANN401  as `run`
    with pytest.raises(ToolError) as caught:
        run(command, **options)
    return str(caught.value)


class Leash:
    """A pipe that a command's descendants hold open: its end says that all of them are gone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "leash"
        os.mkfifo(self.path)
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    async def pulled(self) -> None:
        """Wait until a command has written into it."""
        written = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._reader, written.set)
        await written.wait()
        loop.remove_reader(self._reader)

    def let_go(self) -> bool:
        # A pipe that nobody opened yet does not count as let go.
        os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))
        poll = select.poll()
        poll.register(self._reader, select.POLLHUP)
        return bool(poll.poll(5000))

    def close(self) -> None:
        os.close(self._reader)


@pytest.fixture
def leash(tmp_path: Path) -> Leash:
    return Leash(tmp_path)


def test_a_command_tells_its_output_and_exit_code() -> None:
    assert run("echo out; echo err >&2; exit 3") == Execution(
        exit_code=3, stdout="out\n", stderr="err\n"
    )


def test_a_command_killed_by_a_signal_says_so() -> None:
    assert run("kill -TERM $$").exit_code == -signal.SIGTERM


def test_a_command_runs_where_it_is_told(tmp_path: Path) -> None:
    assert run("pwd -P", cwd=tmp_path).stdout == f"{tmp_path.resolve()}\n"


def test_a_command_has_no_input() -> None:
    assert run("cat; read line; echo $?").stdout == "1\n"


def test_child_env_is_allowlisted(tmp_path: Path) -> None:
    start_up = tmp_path / "start-up"
    start_up.write_text("echo was read\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LC_ALL": "C",
        "DSH_SNAPSHOT_RUN": "/run",
        "DEEPSEEK_API_KEY": "secret",
        "DSH_SNAPSHOT_FILE": "secret",
        "BASH_ENV": str(start_up),
        "ENV": str(start_up),
        "BASH_FUNC_ls%%": "() { echo shadowed; }",
        "PYTHONPATH": "secret",
    }

    stdout = run("env | sort; type -t ls", environment=environment).stdout

    shown = dict(line.split("=", 1) for line in stdout.splitlines() if "=" in line)
    assert shown.keys() - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH",
        "HOME",
        "LC_ALL",
        "DSH_SNAPSHOT_RUN",
    }
    assert stdout.endswith("\nfile\n")
    assert "was read" not in stdout


def test_further_variables_pass_by_configuration() -> None:
    environment = {"PATH": "/bin", "PROXY": "p", "OTHER": "o"}

    assert child_environment(environment, ("PROXY", "NONE")) == {"PATH": "/bin", "PROXY": "p"}


def test_no_start_up_file_is_read(tmp_path: Path) -> None:
    for name in (".bashrc", ".bash_profile", ".profile"):
        (tmp_path / name).write_text("echo was read\n")

    assert run("echo done", environment={**os.environ, "HOME": str(tmp_path)}).stdout == "done\n"


def test_a_command_that_takes_too_long_is_killed_whole(leash: Leash) -> None:
    command = f"exec 3>{leash.path}; echo so far; sleep 600 & (sleep 600; echo late) & sleep 600"

    assert refusal(command, timeout_s=0.2) == (
        "Error [TIMEOUT]: the command was stopped after 0.2 s; it wrote\nso far"
    )
    assert leash.let_go()
    leash.close()


def test_a_silent_command_that_takes_too_long_wrote_nothing() -> None:
    assert refusal("sleep 600", timeout_s=0.05) == (
        "Error [TIMEOUT]: the command was stopped after 0.05 s, before it wrote anything"
    )


def test_a_command_that_ignores_signals_is_killed_all_the_same(leash: Leash) -> None:
    command = f"exec 3>{leash.path}; trap '' TERM INT HUP; sleep 600; sleep 600"

    assert "TIMEOUT" in refusal(command, timeout_s=0.1)
    assert leash.let_go()
    leash.close()


def test_what_a_stopped_command_wrote_is_told_within_bounds() -> None:
    text = refusal("seq 100000; sleep 600", timeout_s=0.5)

    assert "\n[the middle is left out]\n" in text
    assert text.endswith("\n99999\n100000")
    assert len(text.encode()) <= 10_240 + 100


def test_a_cancelled_command_is_killed_whole_and_tells_what_it_wrote(leash: Leash) -> None:
    command = f"exec 3>{leash.path}; echo so far; echo started >&3; sleep 600 & sleep 600"

    async def scenario() -> Execution:
        executor = ShellExecutor()
        task = asyncio.ensure_future(
            executor.run(command, cwd=HERE, environment=os.environ, timeout_s=None)
        )
        await leash.pulled()
        for _ in range(20):  # until the executor, too, knows that the command runs
            await asyncio.sleep(0.001)
        task.cancel()
        return await task

    execution = asyncio.run(scenario())

    assert execution == Execution(exit_code=-signal.SIGKILL, stdout="so far\n", stderr="")
    assert leash.let_go()
    leash.close()


def test_a_command_cancelled_while_it_starts_is_killed_whole(leash: Leash) -> None:
    async def scenario() -> Execution:
        executor = ShellExecutor()
        command = f"exec 3>{leash.path}; sleep 600 & sleep 600"
        task = asyncio.ensure_future(
            executor.run(command, cwd=HERE, environment=os.environ, timeout_s=None)
        )
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(scenario()).exit_code == -signal.SIGKILL
    assert leash.let_go()
    leash.close()


def test_what_a_command_leaves_running_ends_with_it(leash: Leash) -> None:
    execution = run(f"exec 3>{leash.path}; sleep 600 & echo done")

    assert (execution.exit_code, execution.stdout) == (0, "done\n")
    assert leash.let_go()
    leash.close()


def test_what_left_the_group_does_not_hold_the_call_up(tmp_path: Path) -> None:
    """It has the pipes, which the call closes; to find it is the work of a sandbox."""
    (tmp_path / "leaves.py").write_text(
        "import os, time\n"
        "os.setsid()\n"
        "print(os.getpid(), flush=True)\n"
        "open('left', 'w').close()\n"
        "time.sleep(600)\n"
    )
    command = f"{sys.executable} leaves.py & until [ -e left ]; do :; done; echo done"

    execution = run(command, cwd=tmp_path)

    pid, done = execution.stdout.split()
    os.kill(int(pid), signal.SIGKILL)
    assert done == "done"


def test_no_shell_is_an_error_of_the_call(tmp_path: Path) -> None:
    assert refusal("true", environment={"PATH": str(tmp_path)}) == (
        "Error [EXECUTION_ERROR]: there is no 'bash' in PATH"
    )


@pytest.mark.parametrize(
    ("command", "cwd", "why"),
    [
        ("true", HERE / "none", "[Errno 2] No such file or directory: '/none'"),
        ("echo a\0b", HERE, "embedded null byte"),
    ],
)
def test_a_shell_that_does_not_start_is_an_error_of_the_call(
    command: str, cwd: Path, why: str
) -> None:
    assert refusal(command, cwd=cwd) == (f"Error [EXECUTION_ERROR]: the shell did not start: {why}")


def test_a_flood_of_output_is_kept_in_bounds() -> None:
    execution = run("echo start; head -c 5000000 /dev/zero | tr '\\0' x; echo end", kept_bytes=100)

    assert execution.truncated is True
    assert execution.stdout.startswith("start\nxxxx")
    assert execution.stdout.endswith("xxxxend\n")
    assert "\n[4999910 bytes were not kept]\n" in execution.stdout


def test_output_that_is_no_utf8_is_replaced() -> None:
    assert run(r"printf 'a\xff'").stdout == "a\N{REPLACEMENT CHARACTER}"


def test_the_executor_is_a_service_that_another_plugin_can_replace() -> None:
    context = Context()

    apply(context, Config())

    assert isinstance(context.service("executor"), ShellExecutor)


@pytest.mark.parametrize("kept", [2, 3, 8, 100, 1000])
def test_a_capture_keeps_both_ends_however_the_stream_is_cut(kept: int) -> None:
    draw = random.Random(kept)  # noqa: S311  reproducible, not secret
    data = bytes(draw.choices(b"abcdefgh\n", k=500))
    capture = Capture(kept)

    start = 0
    while start < len(data):
        size = draw.randrange(1, 60)
        capture.feed(data[start : start + size])
        start += size

    half = kept // 2
    lost = max(0, len(data) - 2 * half)
    assert capture.lost == lost
    whole = data.decode()
    kept_text = f"{whole[:half]}\n[{lost} bytes were not kept]\n{whole[-half:]}" if lost else whole
    assert capture.text() == kept_text


def test_a_capture_cuts_no_character_in_two() -> None:
    capture = Capture(6)
    capture.feed("ééééé".encode())

    assert capture.text() == "é\n[4 bytes were not kept]\né"
