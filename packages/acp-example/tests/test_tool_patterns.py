import pytest

from acp_example.exceptions import ToolError
from acp_example.tools.patterns import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("/a.py", None, False),
        ("./*.py", "a.py", True),
        ("./*.py", "src/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("src/**", "src/b/c", True),
        ("src/**", "src", True),
        ("**/b/**/a", "x/b/y/b/a", True),
        ("**/b/**/a", "x/a", False),
        ("a?[bc]", "axb", True),
        ("a?[!bc]", "axb", False),
        ("*.{py,md}", "x/a.md", True),
        ("{src,lib}/{a,b}.py", "lib/b.py", True),
        ("{src,lib}/{a,b}.py", "lib/c.py", False),
        ("{a}", "{a}", True),
        ("a*", "a\nb", True),
        ("A", "a", False),
        ("a//b", "a/b", True),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: str | None, *, matches: bool) -> None:
    if path is None:
        with pytest.raises(ToolError, match="VALIDATION_ERROR"):
            compile_pattern(pattern)
    else:
        assert compile_pattern(pattern).matches(path) is matches


@pytest.mark.parametrize("pattern", ["../*", "a/../b", "/etc/*", "{a,..}/b"])
def test_a_pattern_stays_below_its_directory(pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == (
        f"Error [VALIDATION_ERROR]: the pattern {pattern!r} must stay below the directory; "
        "name that one as path"
    )


def test_braces_cannot_multiply_for_ever() -> None:
    pattern = "{a,b}" * 7

    with pytest.raises(ToolError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == (
        f"Error [VALIDATION_ERROR]: the pattern {pattern!r} has too many alternatives"
    )


def test_a_pattern_full_of_stars_stays_quick() -> None:
    assert not compile_pattern("**/" * 30 + "*a" * 30).matches("/".join(["a" * 30] * 30) + "/b")
