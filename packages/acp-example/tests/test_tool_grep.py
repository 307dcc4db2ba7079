import asyncio
import io
import json
import os
import runpy
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from workspace import Workspace

from acp_example.tools import grep_worker
from acp_example.tools.grep import Grep
from acp_example.tools.walk import Walk


def test_grep_lists_matching_lines(ws: Workspace) -> None:
    ws.file("src/a.py", "import os\n\nx = os.name\r\n")
    ws.file("b.md", "OS and os")

    result = ws.run(Grep(), pattern=r"\bos\b")

    assert result.text == "b.md:1: OS and os\nsrc/a.py:1: import os\nsrc/a.py:3: x = os.name"
    assert result.truncated is False
    assert result.details == {
        "matches": [
            {"path": "b.md", "line": 1, "text": "OS and os"},
            {"path": "src/a.py", "line": 1, "text": "import os"},
            {"path": "src/a.py", "line": 3, "text": "x = os.name"},
        ]
    }


def test_grep_looks_where_it_is_told(ws: Workspace) -> None:
    ws.file("src/a.py", "x\n")
    ws.file("src/a.md", "x\n")
    ws.file("b.py", "X\n")

    assert ws.run(Grep(), pattern="x", glob="*.py").text == "src/a.py:1: x"
    assert ws.run(Grep(), pattern="x", path="src/a.md").text == "src/a.md:1: x"
    assert ws.run(Grep(), pattern="x", path="b.py", ignore_case=True).text == "b.py:1: X"
    assert ws.run(Grep(), pattern="y").text == "no line matches"


def test_grep_says_that_there_is_more(ws: Workspace) -> None:
    ws.file("a", "x\nx\nx\n")

    result = ws.run(Grep(), pattern="x", limit=2)

    assert result.visible == "a:1: x\na:2: x\n\n[only the first 2 matches are listed]"
    assert result.truncated is True
    assert ws.run(Grep(), pattern="x", limit=3).truncated is False


def test_oversized_output_of_grep_is_cut_at_whole_lines(ws: Workspace) -> None:
    ws.file("a", ("x" * 300 + "\n") * 50)

    result = ws.run(Grep(), pattern="x", limit=40)

    path = ws.spill / "1-2.1.1/3.1.2-grep.txt"
    shown = result.text.splitlines()
    assert len(result.visible.encode()) <= 10_240
    assert len(result.details["matches"]) == len(shown) >= 32
    assert result.notice == (
        "only the first 40 matches are listed; "
        f"only the first {len(shown)} lines fit; read {str(path)!r} for all of them"
    )
    assert path.read_text().count("\n") == 40


def test_grep_lists_no_more_than_anybody_reads(ws: Workspace) -> None:
    ws.file("a", "x\n" * 1001)

    result = ws.run(Grep(), pattern="x", limit=10**9)

    assert result.notice == "only the first 1000 matches are listed"


def test_grep_says_that_it_could_not_look_everywhere(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_example.tools.grep.Walk", lambda root: Walk(root, limit=1))
    ws.file("a", "x")
    ws.file("b", "x")

    assert ws.run(Grep(), pattern="x").visible == (
        "a:1: x\n\n[the directory is too large to be searched whole; narrow the path]"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"pattern": "("},
            (
                "VALIDATION_ERROR]: the pattern '(' is no regular expression: "
                "missing ), unterminated subpattern at position 0"
            ),
        ),
        ({"pattern": "x", "path": "none"}, "PATH_NOT_FOUND]: there is no 'none'"),
        (
            {"pattern": "x", "glob": "/x"},
            (
                "VALIDATION_ERROR]: the pattern '/x' must stay below the directory; "
                "name that one as path"
            ),
        ),
    ],
)
def test_grep_says_why_it_cannot(ws: Workspace, arguments: dict[str, object], message: str) -> None:
    assert ws.error(Grep(), **arguments) == f"Error [{message}"


def test_a_pattern_that_python_warns_of_is_searched(ws: Workspace) -> None:
    ws.file("a", "[")

    assert ws.run(Grep(), pattern="[[a]").text == "a:1: ["


def test_a_cancelled_grep_leaves_no_process(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that would take for ever is stopped, which needs a process of its own."""
    ws.file("a", "a" * 60 + "!")
    started: list[asyncio.subprocess.Process] = []
    spawn = asyncio.create_subprocess_exec

    async def noted(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:  # noqa: ANN401
        started.append(await spawn(*arguments, **options))
        task.cancel()
        return started[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    task: asyncio.Task[Any]

    async def scenario() -> None:
        nonlocal task
        task = asyncio.ensure_future(Grep().run({"pattern": "(a+)+$"}, ws.context()))
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(started[0].pid, 0)

    asyncio.run(scenario())


def test_a_search_that_dies_is_an_error_of_the_call(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = SimpleNamespace(__file__=str(ws.file("dies.py", "raise SystemExit(3)")))
    monkeypatch.setattr("acp_example.tools.grep.grep_worker", dying)

    assert ws.error(Grep(), pattern="x", path="dies.py") == (
        "Error [EXECUTION_ERROR]: the search ended with status 3"
    )


def ask(*files: str, pattern: str = "x", **query: object) -> dict[str, Any]:
    pairs = [(file, os.path.basename(file)) for file in files]  # noqa: PTH119  a name is a text
    return grep_worker.search(
        {"pattern": pattern, "ignoreCase": False, "limit": 9, "files": pairs, **query}
    )


def test_the_worker_passes_over_what_is_no_text(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep_worker, "SIZE_LIMIT", 10)
    files = [
        ws.file("binary", b"x\0"),
        ws.file("large", "x" * 11),
        ws.cwd / "none",
        ws.file("empty"),
        ws.file("latin", b"x\xe9"),
    ]

    assert ask(*map(str, files))["matches"] == [
        {"path": "latin", "line": 1, "text": "x\N{REPLACEMENT CHARACTER}"}
    ]


def test_the_worker_stops_where_it_has_enough(ws: Workspace) -> None:
    path = str(ws.file("a", "x\ny\nx\nx\n"))

    assert ask(path, limit=2) == {
        "matches": [
            {"path": "a", "line": 1, "text": "x"},
            {"path": "a", "line": 3, "text": "x"},
        ],
        "more": True,
    }


def test_the_worker_cuts_long_lines(ws: Workspace) -> None:
    [match] = ask(str(ws.file("a", "x" * 450)))["matches"]

    assert match["text"] == f"{'x' * 400} [50 more characters in this line]"


def test_the_worker_counts_an_empty_last_line_as_none(ws: Workspace) -> None:
    assert len(ask(str(ws.file("a", "1\n\n")), pattern="")["matches"]) == 2


def query_for(ws: Workspace) -> bytes:
    files = [(str(ws.file("a", "x")), "a")]
    query = {"pattern": "X", "ignoreCase": True, "limit": 1, "files": files}
    return json.dumps(query).encode()


ANSWER = {"matches": [{"path": "a", "line": 1, "text": "x"}], "more": False}


def test_the_worker_answers_on_its_output(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(query_for(ws))))
    monkeypatch.setattr(signal, "alarm", lambda seconds: seconds)

    runpy.run_path(grep_worker.__file__, run_name="__main__")

    assert json.loads(capsys.readouterr().out) == ANSWER


def test_the_worker_runs_without_any_package(ws: Workspace) -> None:
    done = subprocess.run(  # noqa: S603  our own file
        [sys.executable, "-I", "-S", grep_worker.__file__],
        input=query_for(ws),
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout) == ANSWER


def test_grep_limited_to_one_match_says_so_in_the_singular(ws: Workspace) -> None:
    ws.file("a.py", "x\nx\n")

    result = ws.run(Grep(), pattern="x", limit=1)

    assert result.notice == "only the first match is listed"
