import pytest

from acp_example.tools.commands import is_harmless, review


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la src",
        "cat README.md | head -n 5 | wc -l",
        "grep -rn 'a b' src",
        'echo "a|b"',
        "pwd",
        "stat a.py",
    ],
)
def test_commands_that_only_read_are_harmless(command: str) -> None:
    assert is_harmless(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/passwd",
        "cat ../secret",
        "cat src/../../secret",
        "cat ~/x",
        "grep -f/etc/passwd x",
        "head --file=../x",
        "ls --color ..",
    ],
)
def test_harmless_commands_with_arguments_that_escape_are_not(command: str) -> None:
    assert not is_harmless(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "  ",
        "rm x",
        "python3 -c 1",
        "./ls",
        "FOO=1 ls",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls & rm x",
        "ls |& cat",
        "ls | rm x",
        "ls |",
        "| ls",
        "ls > x",
        "cat < x",
        "cat $(rm x)",
        "cat `rm x`",
        "cat $HOME",
        "cat *",
        "cat 'x",
        'echo "x',
        "ls\nrm x",
        "ls \\\nx",
        "(ls)",
        "{ ls; }",
        "! ls",
        "ls # x",
        "cat [ab]",
        "find . -delete",
        "sort -o x y",
        "git diff",
        "sed -i s/a/b/ x",
    ],
)
def test_whatever_may_write_or_cannot_be_analysed_is_not_harmless(command: str) -> None:
    assert not is_harmless(command)


@pytest.mark.parametrize(
    ("mode", "command", "judgement"),
    [
        ("read-only", "ls", "allow"),
        ("read-only", "rm x", "deny"),
        ("read-only", None, "deny"),
        ("read-only", 7, "deny"),
        ("workspace-write", "ls", None),
        ("workspace-write", "rm x", None),
        ("full-access", "rm x", None),
    ],
)
def test_only_a_read_only_session_is_judged(
    mode: str, command: object, judgement: str | None
) -> None:
    arguments = {} if command is None else {"command": command}

    assert review(arguments, mode) == judgement
