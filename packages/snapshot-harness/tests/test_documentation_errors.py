"""The page on errors has texts that can come, and all that a guard can say."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from documentation import ROOT
from reference_tables import REFERENCE, code

SOURCES = [
    path
    for package in ("llm-replay", "snapshot-harness")
    for path in (ROOT / "packages" / package / "src").rglob("*.py")
]


def templates(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the texts of a source, `…` in place of what is filled in."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = template(node)
            if text:
                yield text


def template(node: ast.AST | None) -> str:
    """Return the text that an expression makes, if it is one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.Constant) else "…" for one in node.values]
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.BinOp):
        return (template(node.left) or "…") + (template(node.right) or "…")
    return ""


def is_told(text: str, texts: Iterable[str]) -> bool:
    """Tell whether the words of a documented text stand in one of the texts, in order."""
    words = [part.strip() for part in text.split("…") if part.strip(" :;,()")]
    pattern = re.compile(".*".join(map(re.escape, words)))
    return any(pattern.search(one) for one in texts)


def documented_errors() -> list[str]:
    """Return every text of the page on errors."""
    lines = (REFERENCE / "errors.md").read_text("utf-8").splitlines()
    return [code(line)[0] for line in lines if line.startswith("| `")]


def test_each_documented_error_is_one_that_can_come() -> None:
    texts = [text.split("\n")[0] for text in templates(SOURCES)]

    assert [text for text in documented_errors() if not is_told(text, texts)] == []


def test_each_problem_of_a_guard_is_documented() -> None:
    harness = ROOT / "packages/snapshot-harness/src/snapshot_harness"
    found = set()
    for path in harness.glob("guards*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "what":
                found.add(template(node.value))
    documented = documented_errors()

    assert {text for text in found if text and not is_told(text, documented)} == set()
