import pytest

from acp_example.bounds import Limit, cut_end, cut_middle

MARKER = "[the middle is left out]"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("a" * 10, True),
        ("a" * 11, False),
        ("é" * 5, True),
        ("é" * 6, False),
        ("\n" * 3, True),
        ("\n" * 4, False),
        ("1\n2\n3", True),
        ("1\n2\n3\n4", False),
        ("a\u2028b\x0cc\rd", True),
    ],
)
def test_a_limit_counts_bytes_and_lines(text: str, *, fits: bool) -> None:
    assert Limit(size=10, lines=3).admits(text) is fits


@pytest.mark.parametrize("text", ["x" * 500, "é" * 500, "🌍" * 500, "ab\n" * 300, "é\n" * 300])
@pytest.mark.parametrize("size", [40, 41, 42, 43, 100])
def test_oversized_text_is_cut_once_within_bytes_and_lines(text: str, size: int) -> None:
    limit = Limit(size=size, lines=10)

    cut = cut_middle(text, MARKER, limit)

    assert limit.admits(cut)
    assert cut.count(MARKER) == 1
    head, tail = cut.split(f"{MARKER}\n")
    assert text.startswith(head.removesuffix("\n"))
    assert text.endswith(tail)
    assert tail


def test_both_ends_of_a_long_text_are_kept() -> None:
    text = "".join(f"{number}\n" for number in range(1, 101))

    assert cut_middle(text, "[cut]", Limit(size=1000, lines=7)) == "1\n2\n3\n[cut]\n98\n99\n100\n"


def test_a_limit_smaller_than_the_marker_leaves_the_marker() -> None:
    assert cut_middle("x" * 50, MARKER, Limit(size=3, lines=3)) == f"{MARKER}\n"


def test_the_start_of_a_text_is_cut_at_whole_characters() -> None:
    assert cut_end("aé🌍", Limit(size=4)) == "aé"
    assert cut_end("1\n2\n3\n", Limit(lines=2)) == "1\n2\n"
    assert cut_end("a\ud83db", Limit()) == "a?b"
