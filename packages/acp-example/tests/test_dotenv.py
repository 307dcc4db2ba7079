from pathlib import Path

import pytest

from acp_example.dotenv import read_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("KEY=abc", "abc"),
        ("export KEY = abc # mine", "abc"),
        ("KEY='a # b'", "a # b"),
        ('  KEY="a b"  # c', "a b"),
        ("KEY=", ""),
        ("KEY=one\nKEY=two\n", "two"),
        ("OTHER=abc\n# KEY=abc\nKEYS=abc\nnonsense\n", None),
        ("KEY='never closed\nKEY2=x", "'never closed"),
        ("", None),
    ],
)
def test_a_value_is_found_by_its_name(tmp_path: Path, text: str, value: str | None) -> None:
    file = tmp_path / ".env"
    file.write_text(text)

    assert read_value(file, "KEY") == value


def test_a_file_that_is_not_there_or_no_text_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"KEY=\xff")

    assert read_value(tmp_path / "none", "KEY") is None
    assert read_value(tmp_path / "bytes", "KEY") is None
    assert read_value(tmp_path, "KEY") is None
