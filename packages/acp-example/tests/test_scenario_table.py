"""The map of the corpus says what the directories say."""

import re
from collections import Counter
from itertools import combinations

from scenario_table import COMMAND, MARK, PAGE, SCENARIOS, behaviours, reasons, way_back

from llm_replay.session_log import read_session_log


def test_every_scenario_is_on_the_map_and_nothing_else() -> None:
    mapped = {name for one in behaviours(PAGE.read_text()) for name in one.scenarios}

    assert mapped == set(reasons())


def test_every_row_of_the_map_is_read() -> None:
    there, _, _ = PAGE.read_text().partition(MARK)
    rows = [line for line in there.splitlines() if line.startswith("| `")]

    assert len(behaviours(there)) == len(rows)


def test_no_behaviour_has_two_rows() -> None:
    found = behaviours(PAGE.read_text())

    assert [key for key, count in Counter(one.key for one in found).items() if count > 1] == []
    assert [what for what, count in Counter(one.what for one in found).items() if count > 1] == []


def test_each_scenario_is_the_one_to_read_for_some_behaviour() -> None:
    first = {one.scenarios[0] for one in behaviours(PAGE.read_text())}

    assert sorted(set(reasons()) - first) == []


def test_the_way_back_is_the_way_there_turned_round() -> None:
    page = PAGE.read_text()
    _, _, back = page.partition(MARK)

    assert back == way_back(page), f"run {COMMAND}"


def test_no_two_pins_share_a_line_of_a_prompt() -> None:
    pins = [file.read_text() for file in SCENARIOS.glob("*/system-prompt.expected.md")]
    lines = [set(re.sub("<!-- header .*", "", text).splitlines()) - {""} for text in pins]
    shared = [one & other for one, other in combinations(lines, 2)]

    assert len(shared) == 1
    assert shared == [set()], "one changed word would fail more than one header class"


def test_a_packed_log_decodes_to_what_its_plain_twin_says() -> None:
    plain, packed = (
        read_session_log((SCENARIOS / name / "session.jsonl").read_bytes())
        for name in ("bash-tool-turn", "packed-rows")
    )

    assert packed.header == plain.header
    assert packed.events == plain.events
    assert len(set(packed.lines)) < len(set(plain.lines))
