from pathlib import Path

import pytest
from kit import add_scenario, make_suite, set_up

from snapshot_harness.header_desk import HeaderDesk, HeaderSender, find_pin
from snapshot_harness.headers import Told, system_bytes, tools_bytes
from snapshot_harness.suite import Suite, read_suite

FIRST, SECOND = Told("You are one.", []), Told("You are two.", [])


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """A suite whose pin was told two things."""
    made = make_suite(tmp_path / "scenarios")
    pin = add_scenario(made, "pin", toml="pins_header = true").directory
    (pin / "system-prompt.expected.md").write_bytes(system_bytes([FIRST, SECOND]))
    (pin / "tool-schemas.expected.json").write_bytes(tools_bytes([FIRST, SECOND]))
    add_scenario(made, "other")
    return read_suite(made.path)


def judged(suite: Suite, **headers: list[Told]) -> list[str]:
    desk, sender = HeaderDesk(), HeaderSender()
    for scenario, told in headers.items():
        desk.add(
            sender.pack(told),
            node="suite.toml",
            suite=str(suite.path),
            header_class="default",
            scenario=scenario,
        )
    return [problem for one in desk.judge() for problem in one.problems]


def test_each_text_is_handed_on_once() -> None:
    sender = HeaderSender()

    first, second = sender.pack([FIRST, SECOND]), sender.pack([SECOND])

    assert list(first["texts"].values()) == [["You are one.", []], ["You are two.", []]]
    assert second == {"keys": [first["keys"][1]], "texts": {}}


def test_what_the_pin_was_told_may_be_told(suite: Suite) -> None:
    assert judged(suite, pin=[FIRST, SECOND], other=[SECOND]) == []


def test_a_scenario_without_headers_is_not_judged(suite: Suite) -> None:
    assert judged(suite, other=[]) == []


def test_a_pin_must_be_told_all_that_it_pins_in_order(suite: Suite) -> None:
    (fewer,) = judged(suite, pin=[FIRST])
    (swapped,) = judged(suite, pin=[SECOND, FIRST])

    assert "its sidecars hold 2 headers, its run had 1" in fewer
    assert "or in another order" in swapped
    assert fewer.endswith("hint: if this change is meant, refresh 'pin': it pins this class")


def test_sidecars_that_cannot_be_read_are_told(suite: Suite) -> None:
    path = suite.directory / "pin" / "tool-schemas.expected.json"
    path.write_text("[]\n")
    (wrong,) = judged(suite, other=[FIRST])
    path.unlink()
    (missing,) = judged(suite, other=[FIRST])

    assert "the sidecars of class 'default' can't be read: 2 prompts beside 0" in wrong
    assert missing == (
        f"{path.parent}: tool-schemas.expected.json is missing\n"
        "  hint: refresh 'pin': it pins class 'default', and refresh writes the file"
    )


def test_a_scenario_that_cannot_be_read_is_no_pin(suite: Suite) -> None:
    (suite.directory / "aaa").mkdir()
    (suite.directory / "aaa" / "scenario.toml").write_text("why = 1\n")

    assert find_pin(read_suite(suite.path), "default") == suite.directory / "pin"
    set_up(suite.directory / "pin")
    assert find_pin(read_suite(suite.path), "default") is None
