import pytest

from snapshot_harness.dotenv import parse_dotenv


def test_names_and_values_are_read_as_shells_write_them() -> None:
    text = (
        "# a comment\n\nA=1\nexport B = two words # a comment\nC='single # \"quoted\"' # more\n"
        'D="a\\n\\"b\\" \\\\ $x"\nE=\nF=a#b\nA=2\n  G="" \n'
    )

    assert parse_dotenv(text) == {
        "A": "2",
        "B": "two words",
        "C": 'single # "quoted"',
        "D": 'a\n"b" \\ $x',
        "E": "",
        "F": "a#b",
        "G": "",
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("A=1\nsecret words\n", "line 2 is not NAME=VALUE"),
        ("1A=2", "line 1 is not NAME=VALUE"),
        ("A='x", "line 1 has a quote that doesn't end"),
        ('A="x', "line 1 has a quote that doesn't end"),
    ],
)
def test_a_line_that_is_none_is_named_and_not_quoted(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what) as caught:
        parse_dotenv(text)

    assert str(caught.value) == what
