"""The documentation as its reader uses it: fenced blocks of a page, and a shell to run them in.

- A `console` block is run: lines after `$ ` are commands, the others are what they print, in
  this order and with gaps; `…` stands for any text. Each command must succeed; that the last
  one of a block fails is said by `<!-- test: fails -->` before the block.
- A `code-block` with a `:caption:` is a file, or a change to one if it is a `diff`.
- `<!-- test: begins PAGE -->` begins with the files that another page ends with.
- `<!-- test: env NAME=VALUE -->` sets a variable, for what a reader has and a test has not.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"(?P<fence>`{3,})(?P<info>[^`]*)")
_DIRECTIVE = re.compile(r"<!-- test: (?P<word>\w+) ?(?P<rest>.*?) ?-->")
_INFO = re.compile(r"\{(?P<name>[\w-]+)\} ?(?P<argument>.*)")
_OPTION = re.compile(r":(?P<name>[\w-]+): ?(?P<value>.*)")
_DONE = "the command is done:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language, the file it shows, its text, and how it is tested."""

    page: str
    line: int
    language: str
    caption: str
    text: str
    words: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it stands, for a message."""
        return f"{self.page}:{self.line}"


def read_page(page: str) -> tuple[list[Block], list[tuple[str, str]]]:
    """Return a page's blocks, and its directives `begins` and `env`."""
    lines = iter(enumerate((DOCS / page).read_text("utf-8").split("\n"), 1))
    blocks: list[Block] = []
    settings: list[tuple[str, str]] = []
    words: list[str] = []
    for number, line in lines:
        directive = _DIRECTIVE.fullmatch(line)
        if directive is not None and directive["word"] in {"begins", "env"}:
            settings.append((directive["word"], directive["rest"]))
        elif directive is not None:
            words.append(directive["word"])
        fence = _FENCE.fullmatch(line)
        if fence is not None:
            body = list(_until(lines, fence["fence"]))
            blocks.append(_block(page, number, fence["info"], body, tuple(words)))
            words = []
    return blocks, settings


def _until(lines: Iterator[tuple[int, str]], fence: str) -> Iterator[str]:
    for _, line in lines:
        if line == fence:
            return
        yield line


def _block(page: str, line: int, info: str, body: list[str], words: tuple[str, ...]) -> Block:
    options = {}
    directive = _INFO.fullmatch(info)
    while directive and body and (option := _OPTION.fullmatch(body[0])):
        options[option["name"]] = option["value"]
        body = body[1:]
    language = info.strip()
    if directive:
        shows_code = directive["name"] == "code-block"
        language = directive["argument"] if shows_code else directive["name"]
    caption = options.get("caption", "") if language != "literalinclude" else ""
    text = "\n".join(body).strip("\n") + "\n"
    return Block(page=page, line=line, language=language, caption=caption, text=text, words=words)


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the lines it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            found[-1][1].append(line)
    return found


def missing_line(expected: list[str], printed: str) -> str | None:
    """Return the first expected line that was not printed in its place."""
    actual = iter(printed.splitlines())
    for line in expected:
        if line.strip() in {"", "…"}:
            continue
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("…"))))
        if not any(pattern.fullmatch(one.rstrip()) for one in actual):
            return line
    return None


def changed(text: str, change: str) -> str:
    """Return a text with a change as a diff shows it: its lines must stand there, once.

    Raises:
        LookupError: They do not.
    """
    lines = change.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    if text.count(old) != 1:
        raise LookupError(f"{old!r} stands there {text.count(old)} times")
    return text.replace(old, new)


class Shell:
    """A bash that keeps its directory and variables from command to command."""

    def __init__(self, cwd: Path, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc"],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit status and what it printed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{_DONE} %s\\n' $?\n")
        stdin.flush()
        printed: list[str] = []
        for line in stdout:
            if line.startswith(_DONE):
                return int(line.removeprefix(_DONE)), "".join(printed)
            printed.append(line)
        raise AssertionError(f"bash ended in {command!r}:\n{''.join(printed)}")

    def close(self) -> None:
        """End it, and what it left in the background."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
