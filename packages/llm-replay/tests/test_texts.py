"""Each text that this package can say stands in one of its tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import llm_replay

SOURCES = Path(llm_replay.__file__).parent
WORDS = re.compile(r"[a-z']+,? [a-z']+")


def docstrings(tree: ast.AST) -> set[ast.AST]:
    return {
        statement.value
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list)
        for statement in body
        if isinstance(statement, ast.Expr)
    }


def texts(path: Path) -> Iterator[str]:
    """Yield the lines of what a module says, cut where something is filled in."""
    tree = ast.parse(path.read_text("utf-8"))
    left_out = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield from (line.strip() for line in node.value.split("\n"))


def test_each_text_of_the_package_is_pinned_by_a_test() -> None:
    here = Path(__file__)
    tests = [path for path in here.parent.rglob("test_*.py") if path != here]
    pinned = "\n".join(text for path in tests for text in texts(path)).replace("\\", "")
    unpinned = [
        f"{path.name}: {text}"
        for path in sorted(SOURCES.glob("*.py"))
        for text in texts(path)
        if WORDS.search(text) and text.strip(" :;") not in pinned
    ]

    assert unpinned == []
