"""What is served to the agent for real, below one directory."""

import json
import os
import queue
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import open_files, runs

from snapshot_harness.client import Client
from snapshot_harness.terminal import signal_name
from snapshot_harness.watchdog import WATCHDOG


class Sink:
    """Takes responses as the agent's stdin would."""

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def send(self, data: bytes, *, counted: bool) -> None:
        assert not counted
        self.lines.put(json.loads(data))


class Asker:
    """Asks a client, and waits for its answers."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.client = Client(cwd, {"PATH": os.defpath, "GREETING": "hello"})
        self.sink = Sink()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401
        self.client.serve({"id": 1, "method": method, "params": params}, self.sink)
        response = self.sink.lines.get(timeout=10)
        found: dict[str, Any] = response["result"] if "result" in response else response["error"]
        return found

    def run(self, *argv: str, **rest: Any) -> str:  # noqa: ANN401
        made = self.ask("terminal/create", command=argv[0], args=list(argv[1:]), **rest)
        return str(made["terminalId"])


@pytest.fixture
def asker(tmp_path: Path) -> Iterator[Asker]:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    asker = Asker(cwd)
    WATCHDOG.add_group(2**22)  # so that it runs already
    WATCHDOG.drop_group(2**22)
    yield asker
    asker.client.end()


def test_a_file_is_read_whole_or_by_lines(asker: Asker) -> None:
    path = asker.cwd / "a"
    path.write_text("1\n2\n3\n")

    assert asker.ask("fs/read_text_file", path=str(path)) == {"content": "1\n2\n3\n"}
    assert asker.ask("fs/read_text_file", path=str(path), line=2) == {"content": "2\n3\n"}
    assert asker.ask("fs/read_text_file", path=str(path), limit=1) == {"content": "1\n"}
    assert asker.ask("fs/read_text_file", path=str(path), line=2, limit=1) == {"content": "2\n"}


def test_a_file_is_read_as_it_is_and_cut_at_line_feeds_alone(asker: Asker) -> None:
    path = asker.cwd / "a"
    path.write_bytes("a\r\nb\x0cc\u2028d\ne\rf".encode())

    assert asker.ask("fs/read_text_file", path=str(path)) == {"content": "a\r\nb\x0cc\u2028d\ne\rf"}
    assert asker.ask("fs/read_text_file", path=str(path), line=2, limit=1) == {
        "content": "b\x0cc\u2028d\n"
    }
    assert asker.ask("fs/read_text_file", path=str(path), line=0, limit=1) == {"content": "a\r\n"}
    assert asker.ask("fs/read_text_file", path=str(path), line=9) == {"content": ""}


@pytest.mark.parametrize("mask", [0o077, 0])
def test_what_is_made_for_the_agent_does_not_hang_on_the_runners_umask(
    asker: Asker, mask: int
) -> None:
    kept = asker.cwd / "kept"
    kept.touch()
    kept.chmod(0o600)
    before = os.umask(mask)
    try:
        for path in (asker.cwd / "new" / "dir" / "a", kept):
            asker.ask("fs/write_text_file", path=str(path), content="x")
        name = asker.run("/bin/sh", "-c", "umask")
    finally:
        os.umask(before)
    asker.ask("terminal/wait_for_exit", terminalId=name)

    modes = [path.stat().st_mode & 0o777 for path in (kept, *sorted(asker.cwd.rglob("new/**/*")))]
    assert modes == [0o600, 0o755, 0o644]
    assert asker.ask("terminal/output", terminalId=name)["output"] == "0022\n"


def test_a_file_is_written_with_its_directories(asker: Asker) -> None:
    path = asker.cwd / "new" / "a"

    assert asker.ask("fs/write_text_file", path=str(path), content="ä") == {}
    assert path.read_text("utf-8") == "ä"


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("fs/read_text_file", {"path": "{cwd}/none"}, (-32002, "Resource not found: {cwd}/none")),
        ("fs/read_text_file", {"path": "{cwd}"}, (-32603, "can't read: ")),
        ("fs/read_text_file", {"path": "a"}, (-32602, "path must be an absolute path")),
        ("fs/read_text_file", {}, (-32602, "path must be an absolute path")),
        ("fs/read_text_file", {"path": "{cwd}/../x"}, (-32602, "path is outside the workspace")),
        ("fs/read_text_file", {"path": "{cwd}/link"}, (-32602, "path is outside the workspace")),
        ("fs/read_text_file", {"path": "{cwd}/pipe"}, (-32603, "can't read: ")),
        ("fs/write_text_file", {"path": "{cwd}/pipe", "content": "x"}, (-32603, "can't write: ")),
        ("fs/write_text_file", {"path": "{cwd}/up", "content": "x"}, (-32602, "path is outside")),
        ("fs/write_text_file", {"path": "{cwd}/a"}, (-32602, "content must be a string")),
        ("fs/write_text_file", {"path": "{cwd}", "content": "x"}, (-32603, "can't write: ")),
        ("terminal/create", {"command": "/no/such"}, (-32603, "can't start: No such file")),
        ("terminal/create", {"command": "x", "cwd": "/"}, (-32602, "cwd is outside")),
        ("terminal/output", {"terminalId": "x"}, (-32002, "no terminal 'x'")),
        ("terminal/wait_for_exit", {}, (-32002, "no terminal None")),
    ],
)
def test_what_cannot_be_served_is_an_error_of_the_protocol(
    asker: Asker, method: str, params: dict[str, str], error: tuple[int, str]
) -> None:
    (asker.cwd / "link").symlink_to("/etc")
    (asker.cwd / "up").symlink_to("../new")
    os.mkfifo(asker.cwd / "pipe")
    before = open_files()
    filled = {key: value.format(cwd=asker.cwd) for key, value in params.items()}

    answer = asker.ask(method, **filled)

    assert answer["code"] == error[0]
    assert answer["message"].startswith(error[1].format(cwd=asker.cwd))
    assert open_files() == before


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {"path": "{cwd}/a", "line": "x"}),
        ("fs/read_text_file", {"path": "{cwd}/a", "line": True}),
        ("fs/read_text_file", {"path": "{cwd}/a", "line": 1.0}),
        ("fs/read_text_file", {"path": "{cwd}/a", "limit": -1}),
        ("fs/read_text_file", {"path": "/a\0b"}),
        ("fs/write_text_file", {"path": "{cwd}/a", "content": "\ud800"}),
        ("terminal/create", {}),
        ("terminal/create", {"command": "/bin/sh", "args": "-c"}),
        ("terminal/create", {"command": "/bin/sh", "args": [1]}),
        ("terminal/create", {"command": "/bin/sh", "env": [{"name": "A", "value": 1}]}),
        ("terminal/create", {"command": "x", "env": ["x"]}),
        ("terminal/create", {"command": "x", "env": [{"name": "A"}]}),
        ("terminal/create", {"command": "x", "args": 3}),
        ("terminal/create", {"command": "x", "outputByteLimit": "x"}),
        ("terminal/create", {"command": "x\0"}),
    ],
)
def test_params_of_the_wrong_kind_are_refused(
    asker: Asker, method: str, params: dict[str, Any]
) -> None:
    (asker.cwd / "a").touch()
    if "path" in params:
        params = {**params, "path": params["path"].format(cwd=asker.cwd)}

    assert asker.ask(method, **params)["code"] == -32602


def test_params_that_are_no_object_are_refused(asker: Asker) -> None:
    asker.client.serve({"id": 1, "method": "fs/read_text_file", "params": []}, asker.sink)

    assert asker.sink.lines.get(timeout=10)["error"]["code"] == -32602


def test_a_command_runs_and_its_exit_is_told(asker: Asker) -> None:
    env = [{"name": "MORE", "value": "more"}]
    (asker.cwd / "sub").mkdir()
    name = asker.run(
        "/bin/sh", "-c", "echo $GREETING $MORE; pwd; exit 3", env=env, cwd=str(asker.cwd / "sub")
    )

    assert name == "terminal-1"
    assert asker.ask("terminal/wait_for_exit", terminalId=name) == {"exitCode": 3, "signal": None}
    assert asker.ask("terminal/output", terminalId=name) == {
        "output": f"hello more\n{asker.cwd}/sub\n",
        "truncated": False,
        "exitStatus": {"exitCode": 3, "signal": None},
    }
    assert asker.ask("terminal/wait_for_exit", terminalId=name)["exitCode"] == 3
    assert asker.ask("terminal/release", terminalId=name) == {}
    assert asker.ask("terminal/output", terminalId=name)["code"] == -32002


def test_output_is_cut_from_the_front(asker: Asker) -> None:
    name = asker.run(sys.executable, "-c", "print('x' * 9 + 'end')", outputByteLimit=4)
    asker.ask("terminal/wait_for_exit", terminalId=name)

    told = asker.ask("terminal/output", terminalId=name)

    assert (told["output"], told["truncated"]) == ("end\n", True)


def test_a_command_can_be_killed_and_its_output_stays(asker: Asker) -> None:
    name = asker.run("/bin/sleep", "600")

    assert "exitStatus" not in asker.ask("terminal/output", terminalId=name)
    assert asker.ask("terminal/kill", terminalId=name) == {}
    exit_status = asker.ask("terminal/wait_for_exit", terminalId=name)
    assert exit_status == {"exitCode": None, "signal": "SIGKILL"}


def test_what_still_runs_at_the_end_is_killed_and_nobody_is_told(asker: Asker) -> None:
    asker.run("/bin/sleep", "600")
    request = {"id": 7, "method": "terminal/wait_for_exit", "params": {"terminalId": "terminal-1"}}
    asker.client.serve(request, asker.sink)

    asker.client.end()

    assert asker.sink.lines.empty()


HOLDS = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=sys.argv[1] == "escapes")
print(child.pid, flush=True)
"""


@pytest.mark.parametrize("how", ["stays", "escapes"])
def test_an_exit_is_told_also_where_something_else_holds_the_output(asker: Asker, how: str) -> None:
    before = open_files()
    name = asker.run(sys.executable, "-c", HOLDS, how)

    assert asker.ask("terminal/wait_for_exit", terminalId=name) == {"exitCode": 0, "signal": None}
    pid = int(asker.ask("terminal/output", terminalId=name)["output"])
    assert asker.ask("terminal/release", terminalId=name) == {}

    assert open_files() == before
    assert runs(pid) == (how == "escapes")
    if how == "escapes":
        os.kill(pid, signal.SIGKILL)  # in a run it is found by its environment


def test_a_signal_without_a_name_has_its_number() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(250) == "SIG250"
