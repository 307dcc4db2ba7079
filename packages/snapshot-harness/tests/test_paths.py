import pytest

from llm_replay.tokens import Roots
from snapshot_harness.paths import (
    RootNames,
    forward_slashes,
    is_absolute,
    path_pattern,
    same_segment,
    spellings,
    tokenize_foreign,
)

MAC = "/private/var/folders/2g/T/acpsnap-1"


@pytest.mark.parametrize(
    ("path", "forms"),
    [
        ("/tmp/a", ("/private/tmp/a", "/tmp/a")),
        ("/private/tmp/a", ("/private/tmp/a", "/tmp/a")),
        ("/var/folders/x", ("/private/var/folders/x", "/var/folders/x")),
        ("/etc/x", ("/private/etc/x", "/etc/x")),
        ("/tmp", ("/private/tmp", "/tmp")),
        ("/home/a", ("/home/a",)),
        ("/tmpx/a", ("/tmpx/a",)),
        ("/private/home/a", ("/private/home/a",)),
    ],
)
def test_a_posix_directory_is_spelled_with_and_without_private(
    path: str, forms: tuple[str, ...]
) -> None:
    assert spellings(path) == forms


DRIVE = r"C:\Users\runneradmin\AppData\My Project"
UNC = r"\\server\share\team\My Project"


@pytest.mark.parametrize(
    "spelled",
    [
        DRIVE,
        DRIVE.lower(),
        DRIVE.replace("\\", "/"),
        DRIVE.replace("\\", "\\\\"),
        "c:" + DRIVE[2:],
        "\\\\?\\" + DRIVE,
        "//?/" + DRIVE.replace("\\", "/"),
        r"C:\Users\RUNNER~1\AppData\MYPROJ~1",
        "C%3A/Users/runneradmin/AppData/My Project",
    ],
)
def test_a_drive_path_is_found_in_every_spelling(spelled: str) -> None:
    assert tokenize_foreign(f"in '{spelled}'", DRIVE, "{{cwd}}") == "in '{{cwd}}'"


def test_a_drive_path_is_found_in_a_file_url() -> None:
    url = "file:///" + DRIVE.replace("\\", "/") + "/a"

    assert tokenize_foreign(url, DRIVE, "{{cwd}}") == "file:///{{cwd}}/a"


@pytest.mark.parametrize(
    "spelled",
    [
        UNC,
        UNC.upper(),
        UNC.replace("\\", "/"),
        UNC.replace("\\", "\\\\"),
        r"\\?\UNC\server\share\team\My Project",
        r"\\server\share\team\MYPROJ~2",
    ],
)
def test_a_network_path_is_found_in_every_spelling(spelled: str) -> None:
    assert tokenize_foreign(f"{spelled}\\a", UNC, "{{cwd}}") == "{{cwd}}\\a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/rec/p", "{{cwd}}"),
        ("(/rec/p)", "({{cwd}})"),
        ("/rec/p/a.py", "{{cwd}}/a.py"),
        ("in /rec/p.", "in {{cwd}}."),
        ("in /rec/p. So", "in {{cwd}}. So"),
        ("file:///rec/p", "file://{{cwd}}"),
        ('"cwd":"/rec/p"', '"cwd":"{{cwd}}"'),
        ("x=/rec/p;", "x={{cwd}};"),
        ("/rec/plain", "/rec/plain"),
        ("/rec/p.txt", "/rec/p.txt"),
        ("/rec/p-2", "/rec/p-2"),
        ("/srv/rec/p", "/srv/rec/p"),
        ("a/rec/p", "a/rec/p"),
    ],
)
def test_a_foreign_directory_is_found_between_boundaries_only(text: str, expected: str) -> None:
    assert tokenize_foreign(text, "/rec/p", "{{cwd}}") == expected


def test_a_foreign_directory_on_a_mac_has_two_spellings() -> None:
    text = f"{MAC}/a and {MAC.removeprefix('/private')}/b"

    assert tokenize_foreign(text, MAC, "{{cwd}}") == "{{cwd}}/a and {{cwd}}/b"


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("Program Files", "PROGRA~1", True),
        ("PROGRA~12", "Program Files", False),
        ("PROGRA~2", "Program Files", True),
        ("readme.markdown", "README~1.MAR", True),
        ("readme.markdown", "README~1.TXT", False),
        ("a", "A", True),
        ("a", "b", False),
        ("Other", "PROGRA~1", False),
        ("+++", "PROGRA~1", False),
    ],
)
def test_a_short_name_may_be_that_of_a_long_one(left: str, right: str, *, same: bool) -> None:
    assert same_segment(left, right) == same
    assert same_segment(right, left) == same


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"{{cwd}}\src\main.py", "{{cwd}}/src/main.py"),
        (r"{{cwd}}\\src\\main.py", "{{cwd}}/src/main.py"),
        ("{{cwd}}\\", "{{cwd}}\\"),
        (r"{{spill}}\a b\c", r"{{spill}}/a b\c"),
        (r"\d+ {{cwd}}", r"\d+ {{cwd}}"),
    ],
)
def test_paths_below_a_token_are_spelled_with_slashes(text: str, expected: str) -> None:
    assert forward_slashes(text) == expected


@pytest.mark.parametrize(
    ("path", "absolute"),
    [
        ("/a/b", True),
        ("C:\\a", True),
        ("c:/a", True),
        (r"\\server\share", True),
        ("/", False),
        ("a/b", False),
        ("C:a", False),
        ("{{cwd}}", False),
        ("", False),
    ],
)
def test_an_absolute_path_is_known_on_any_platform(path: str, *, absolute: bool) -> None:
    assert is_absolute(path) == absolute


def test_a_runs_roots_are_found_resolved_and_not() -> None:
    names = RootNames(Roots(cwd=f"{MAC}/cwd", run=MAC))

    assert names.in_text(f"x{MAC}/cwd{MAC.removeprefix('/private')}/cwd/a") == "x{{cwd}}{{cwd}}/a"


def test_of_two_foreign_directories_the_deeper_is_found_first() -> None:
    names = RootNames(None, foreign=["/rec/p", "/rec/p/q", "relative"])

    assert names.in_text("/rec/p/q/a /rec/p/b relative") == "{{cwd}}/a {{cwd}}/b relative"


def test_a_text_without_directories_keeps_its_backslashes() -> None:
    names = RootNames(Roots(cwd="/tmp/r/cwd"))

    assert names.in_text(r"\d+\s {{cwd}}\a") == r"\d+\s {{cwd}}\a"


def test_a_pattern_is_for_one_directory() -> None:
    assert path_pattern("/home/a.b") == r"/home/a\.b"
