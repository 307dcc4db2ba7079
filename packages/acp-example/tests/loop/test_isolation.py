import ast
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from loop_fixtures import KEYS

HERE = Path(__file__).parent


def test_suite_needs_no_network_no_key(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "a developer's own")

    request.getfixturevalue("bench")

    assert not set(KEYS) & set(os.environ)
    for family in (socket.AF_INET, socket.AF_INET6):
        with pytest.raises(RuntimeError, match="a test of the loop makes no network connection"):
            socket.socket(family)
    with pytest.raises(RuntimeError, match="a test of the loop makes no network connection"):
        socket.create_connection(("127.0.0.1", 9))


def test_no_test_of_the_loop_imports_the_protocol_library() -> None:
    for file in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert not any(name.split(".")[0] == "acp" for name in [*names, module]), file.name


def test_what_the_loop_imports_needs_no_protocol_library_and_no_http() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import loop_bench, acp_example.boot; "
        "print([name for name in ('acp', 'httpx', 'acp_example.server') if name in sys.modules])"
    )

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  our own code

    assert done.stdout == "[]\n"
