"""A fixture that somebody or something spoilt: told at once, with its line, and left alone."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import add_scenario, make_suite, refreshed, replay, say, set_up, text_of

from snapshot_harness.suite import Scenario, Suite

pytestmark = pytest.mark.usefixtures("nothing_left")

FILES = ["session.jsonl", "stdout.expected.jsonl"]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "scenarios")


def first(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Replace the first of something."""
    return lambda data: data.replace(old, new, 1)


SPOILT: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "cut in its last line": (
        lambda data: data[:-30],
        "error",
        ": this is not JSON: unexpected end of data",
    ),
    "with a byte-order mark": (
        lambda data: b"\xef\xbb\xbf" + data,
        "error",
        ":1: column 1: a byte-order mark",
    ),
    "with a conflict marker": (
        first(b"\n", b"\n<<<<<<< HEAD\n"),
        "error",
        ":2: column 1: a merge-conflict marker",
    ),
    "in another encoding": (
        first(b'{"', b'{"\xe9":1,"'),
        "error",
        ":1: column 3: these bytes are not UTF-8",
    ),
    "with a zero byte": (first(b"\n", b"\n\0\n"), "error", ":2: column 1: this is not JSON"),
    "with an infinity": (
        first(b'{"', b'{"x":1e999,"'),
        "error",
        ":1: column 6: this is not JSON: number is infinity",
    ),
    "with a lone surrogate": (
        first(b'{"', b'{"x":"\\ud800","'),
        "failed",
        'at:       x\n  expected: "\\ud800"\n  actual:   nothing',
    ),
    "with 2^53+1": (
        first(b'{"', b'{"x":9007199254740993,"'),
        "failed",
        "at:       x\n  expected: 9007199254740993\n  actual:   nothing",
    ),
    "with a key twice": (
        first(b'{"', b'{"x":1,"x":2,"'),
        "failed",
        "at:       x\n  expected: 2\n  actual:   nothing",
    ),
    "with CR LF": (lambda data: data.replace(b"\n", b"\r\n"), "passed", "as expected"),
    "without an end of its last line": (lambda data: data[:-1], "passed", "as expected"),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("fault", SPOILT)
def test_a_spoilt_fixture_ends_in_a_clear_error(suite: Suite, fault: str, file: str) -> None:
    spoil, outcome, message = SPOILT[fault]
    scenario = refreshed(suite, add_scenario(suite, turns=[[say("Hello")]]))
    path = scenario.directory / file
    path.write_bytes(spoil(path.read_bytes()))
    committed = contents(scenario)
    started = time.monotonic()

    report = replay(suite, scenario)

    assert (report.outcome, message in text_of(report)) == (outcome, True), text_of(report)
    assert outcome == "passed" or f"one/{file}:" in text_of(report)
    assert time.monotonic() - started < 15
    assert contents(scenario) == committed


def test_an_integer_beyond_the_exact_floats_is_kept_to_the_digit(suite: Suite) -> None:
    scenario = add_scenario(suite, turns=[[say("Hello")]])
    log = scenario.directory / "session.jsonl"
    usage = '{"type":"usage","usage":{"inputTokens":9007199254740993,"outputTokens":1}}'
    row = f'{{"type":"assistant/chunk","data":{{"turn":1,"step":1,"chunk":{usage}}}}}\n'
    *lines, finish = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines, row, finish]))

    done = refreshed(suite, scenario)

    assert '"inputTokens":9007199254740993,' in log.read_text()
    assert replay(suite, done).outcome == "passed"
    log.write_text(log.read_text().replace("9007199254740993", "9007199254740992"))
    set_up(done.directory, fake="other-usage")
    assert replay(suite, done).causes[0].expected == "9007199254740992"


def contents(scenario: Scenario) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in scenario.directory.iterdir()}
