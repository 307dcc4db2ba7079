import json
from pathlib import Path

import pytest
from guarded import EVENTS, HEADER, STEPS, told, write_scenario, write_suite
from judging import answer, event

from snapshot_harness.fixtures import (
    INPUT,
    OVERRIDE,
    SCENARIO,
    SESSION,
    SYSTEM,
    TOOLS,
    TRANSCRIPT,
)
from snapshot_harness.json_value import Json

KEY = "sk-" + "a1B2" * 8


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def only(problems: list[str]) -> str:
    assert len(problems) == 1, "\n".join(problems)
    return problems[0]


def first_lines(problems: list[str]) -> list[str]:
    return [problem.split("\n")[0] for problem in problems]


def test_a_sound_suite_has_no_problem(suite: Path) -> None:
    (suite / ".snapshot" / "one").mkdir(parents=True)
    (suite / "__pycache__").mkdir()
    (suite / "notes.md").write_text("<<<<<<< not in a scenario\n")
    (suite / "one" / "workspace" / "deep").mkdir(parents=True)
    (suite / "one" / "workspace" / "deep" / "data.json").write_text('{"a":1,"a":2}')
    (suite / "one" / ".pytest_cache").mkdir()
    (suite / "one" / ".DS_Store").write_bytes(b"\0")

    assert told(suite) == []


def test_a_directory_without_scenario_toml_is_an_orphan(suite: Path) -> None:
    (suite / "lost").mkdir()

    assert only(told(suite)) == (
        "lost: a directory without scenario.toml\n"
        "  Nothing runs it, so what it holds can't fail.\n"
        "  hint: add scenario.toml, or remove the directory"
    )


@pytest.mark.parametrize("name", [INPUT, TRANSCRIPT, SESSION, SYSTEM, TOOLS])
def test_a_missing_file_is_told(suite: Path, name: str) -> None:
    (suite / "one" / name).unlink()

    problem = only(told(suite))

    assert problem.startswith(f"one/{name}: the file is missing\n  hint: ")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sesion.jsonl", "did you mean 'session.jsonl'?"),
        ("session.01.jsonl", "did you mean 'session.1.jsonl'?"),
        ("Session.1.jsonl", "did you mean 'session.1.jsonl'?"),
        ("notes.txt", "remove it"),
        (OVERRIDE, "say `overridden = true`"),
    ],
)
def test_a_file_that_a_scenario_does_not_have_is_told(suite: Path, name: str, hint: str) -> None:
    (suite / "one" / name).write_text("[]")

    problem = only(told(suite))

    assert problem.startswith(f"one/{name}: a scenario has no such file\n")
    assert hint in problem


@pytest.mark.parametrize("name", [SYSTEM, TOOLS])
def test_sidecars_of_a_scenario_that_pins_nothing_are_told(suite: Path, name: str) -> None:
    write_scenario(suite / "two")
    (suite / "two" / name).write_bytes((suite / "one" / name).read_bytes())

    assert "say `pins_header = true`" in only(told(suite))


def test_a_pending_commit_is_told_once(suite: Path) -> None:
    (suite / "one" / ".commit").write_text('{"rename": ["input.json"], "remove": []}')
    (suite / "one" / "input.json.new").write_text("{}")

    assert first_lines(told(suite)) == ["one/.commit: a write of this scenario was interrupted"]


def test_a_gap_in_the_numbers_of_the_logs_is_told(suite: Path) -> None:
    data = (suite / "one" / SESSION).read_bytes()
    (suite / "one" / "session.2.jsonl").write_bytes(
        data.replace(b'"lineage":"1"', b'"lineage":"2"')
    )

    assert "one/session.2.jsonl: its number is out of order: session.1.jsonl is missing" in (
        first_lines(told(suite))
    )


def test_logs_out_of_the_order_of_their_lineage_are_told(suite: Path) -> None:
    path = suite / "one" / SESSION
    data = path.read_text()
    path.with_name("session.1.jsonl").write_text(data)
    path.write_text(data.replace('"lineage":"1"', '"lineage":"2"'))

    lines = first_lines(told(suite))

    assert "one/session.jsonl:1: session.1.jsonl belongs in its place" in lines


def test_a_broken_scenario_toml_is_told_and_the_rest_is_still_looked_at(suite: Path) -> None:
    edit(suite / "one" / SCENARIO, "why", "wy")
    (suite / "two").mkdir()

    lines = first_lines(told(suite))

    assert any(line.startswith("one/scenario.toml") for line in lines)
    assert "two: a directory without scenario.toml" in lines


def test_a_broken_input_json_is_told(suite: Path) -> None:
    (suite / "one" / INPUT).write_text('{"steps": [{"op": "nothing"}]}')

    assert only(told(suite)).startswith("one/input.json")


# overrides


def overridden(suite: Path, document: Json) -> None:
    write_scenario(suite / "two", overridden=True)
    (suite / "two" / OVERRIDE).write_text(json.dumps(document))


ENTRY = {"kind": "throw", "chunks": [], "message": "m", "code": "c"}


def test_an_override_that_is_promised_must_be_there(suite: Path) -> None:
    write_scenario(suite / "two", overridden=True)

    assert only(told(suite)).startswith("two/replay.override.json: the file is missing")


@pytest.mark.parametrize("whole", [True, False])
def test_an_override_that_says_what_the_log_says_is_told(suite: Path, *, whole: bool) -> None:
    entry = {"kind": "chunks", "chunks": [one["data"]["chunk"] for one in answer("one ", "two")]}
    overridden(suite, [entry] if whole else {"patches": [{"at": 0, "entry": entry}]})

    problem = told(suite)[0]

    assert problem.startswith("two/replay.override.json: it says what session.jsonl derives to")
    assert "hint: remove replay.override.json" in problem


def test_an_override_that_says_something_else_is_fine(suite: Path) -> None:
    overridden(suite, {"patches": [{"at": 1, "entry": ENTRY}]})

    assert told(suite) == []


def test_a_patch_past_the_end_is_told(suite: Path) -> None:
    overridden(suite, {"patches": [{"at": 7, "entry": ENTRY}]})

    assert only(told(suite)).startswith("two/replay.override.json: ")


def test_a_patch_past_the_end_of_a_childs_script_is_told_with_its_session(suite: Path) -> None:
    overridden(suite, {"sessions": {"1": {"patches": [{"at": 7, "entry": ENTRY}]}}})
    log = (suite / "two" / SESSION).read_text()
    child = log.replace('"lineage":"1"', '"lineage":"1/1.1.1"').replace("session:1", "session:2")
    (suite / "two" / "session.1.jsonl").write_text(child)

    assert "session 1" in "\n".join(line for line in told(suite) if "override" in line)


def test_an_override_that_is_none_is_told(suite: Path) -> None:
    overridden(suite, {"nothing": 1})

    assert only(told(suite)).startswith("two/replay.override.json: ")


def test_a_log_that_no_script_derives_from_is_told_with_its_line(suite: Path) -> None:
    write_scenario(suite / "two", events=EVENTS[:-1])

    problem = only(told(suite))

    assert problem.startswith(
        "two/session.jsonl:4: the model call of turn 1, step 1 never finished"
    )
    assert "hint: add replay.override.json" in problem


def test_an_override_of_all_calls_needs_no_derivable_log(suite: Path) -> None:
    write_scenario(suite / "two", events=[HEADER], overridden=True)
    (suite / "two" / OVERRIDE).write_text(json.dumps([ENTRY]))

    assert told(suite) == []


# rows

TOOL_CALL = {"type": "tool-call", "arguments": "{}"}


def test_deltas_that_do_not_join_to_their_block_are_told(suite: Path) -> None:
    edit(suite / "one" / SESSION, '"text":"one "', '"text":"One "')

    problem = only(told(suite))

    assert problem.startswith(
        "one/session.jsonl:5: the deltas of block 0 don't join to its block-end\n"
    )


def test_a_malformed_stream_may_do_so(suite: Path) -> None:
    write_scenario(suite / "two", malformed=True)
    edit(suite / "two" / SESSION, '"text":"one "', '"text":"One "')

    assert told(suite) == []


@pytest.mark.parametrize(
    ("chunks", "broken"),
    [
        (
            [
                {"type": "tool-call-delta", "index": 0, "id": "a", "argumentsDelta": "{"},
                {"type": "tool-call-delta", "index": 0, "id": "a", "argumentsDelta": "}"},
                {
                    "type": "block-end",
                    "index": 0,
                    "block": {"type": "tool-call", "arguments": "{}"},
                },
            ],
            False,
        ),
        (
            [
                {"type": "reasoning-delta", "index": 0, "text": "a"},
                {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "b"}},
            ],
            True,
        ),
        ([{"type": "block-end", "index": 0, "block": {"type": "text", "text": "b"}}], False),
        (
            [
                {"type": "text-delta", "index": 0, "text": "a"},
                {"type": "text-delta", "index": 1, "text": "b"},
                {"type": "reasoning-delta", "index": 0, "text": "other kind"},
                {"type": "text-delta", "index": 0, "text": 5},
                {"type": "block-end", "index": 0, "block": {"type": "text", "text": "a"}},
                {"type": "block-end", "index": 1, "block": "odd"},
            ],
            False,
        ),
    ],
)
def test_blocks_of_every_kind_are_joined(suite: Path, chunks: list[Json], *, broken: bool) -> None:
    chunks = [*chunks, {"type": "finish", "reason": {"kind": "stop"}}]
    data = [{"turn": 1, "step": 1, "chunk": chunk} for chunk in chunks]
    write_scenario(suite / "two", events=[event("assistant/chunk", one) for one in data])

    assert bool(told(suite)) == broken


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{{nothing}}", "'{{' begins no token that is served"),
        ("{{session:1}}", "'{{' begins no token that is served"),
        ("{{fromRequest:a}}", "a {{fromRequest:…}} in a log with `tokens: 1`"),
    ],
)
def test_a_model_row_with_braces_that_nothing_serves_is_told(
    suite: Path, text: str, what: str
) -> None:
    path = suite / "one" / SESSION
    path.write_text(path.read_text().replace("one ", text))

    problems = told(suite)

    assert any(line.startswith(f"one/session.jsonl:5: {what}") for line in first_lines(problems))


def test_a_raw_output_with_braces_that_nothing_serves_is_told(suite: Path) -> None:
    raw = [{"type": "text", "text": "braces"}]
    summary = event("compaction/summary", {"turn": 1, "rawOutput": raw})
    write_scenario(suite / "two", events=[*EVENTS, summary])
    edit(suite / "two" / SESSION, "braces", "{{braces")

    assert "two/session.jsonl:9: '{{' begins no token" in only(told(suite))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"error": {"code": "UNKNOWN_TOOL"}}, True),
        ({"error": {"code": "TOOL_NOT_FOUND"}}, False),
        ({"error": {"code": "TIMEOUT"}}, False),
        ({"error": "UNKNOWN_TOOL"}, False),
        ("UNKNOWN_TOOL", False),
    ],
)
def test_a_result_of_an_unknown_tool_is_told(suite: Path, data: Json, *, problem: bool) -> None:
    write_scenario(suite / "two", events=[*EVENTS, {"type": "tool/result", "data": data}])

    assert bool(told(suite)) == problem


@pytest.mark.parametrize(
    ("more", "problem"),
    [({"origin": "recorded"}, True), ({"origin": "recorded", "malformed": True}, False)],
)
def test_a_recorded_call_that_found_no_tool_is_told(
    suite: Path, more: dict[str, Json], *, problem: bool
) -> None:
    failed = event("tool/result", {"error": {"code": "TOOL_NOT_FOUND"}})
    write_scenario(suite / "two", events=[*EVENTS, failed], **more)

    assert bool(told(suite)) == problem


# fixed points


def test_a_log_that_is_not_normalized_is_told_with_its_line(suite: Path) -> None:
    edit(suite / "one" / SESSION, '{"turn":1}', '{"turn": 1}')

    problem = only(told(suite))

    assert problem.startswith("one/session.jsonl:2: not what normalizing makes of it\n")
    assert "hint: run refresh for one" in problem


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("{{session:1}}", "{{session:3}}", 2),
        ('"id":2', '"id":3', 3),
        ("one two", "0a1b2c3d-0000-4000-8000-00000000000a", 2),
        ("one two", "/private{{cwd}}", 2),
    ],
)
def test_a_transcript_that_is_not_normalized_is_told(
    suite: Path, old: str, new: str, line: int
) -> None:
    edit(suite / "one" / TRANSCRIPT, old, new)

    assert only(told(suite)).startswith(
        f"one/stdout.expected.jsonl:{line}: not what normalizing makes of it"
    )


@pytest.mark.parametrize("name", [SESSION, TRANSCRIPT])
def test_lines_that_end_in_cr_lf_are_told(suite: Path, name: str) -> None:
    path = suite / "one" / name
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert f"one/{name}:1: its lines end in CR LF" in first_lines(told(suite))


def test_a_file_with_a_line_too_few_is_told(suite: Path) -> None:
    path = suite / "one" / TRANSCRIPT
    path.write_bytes(path.read_bytes().rstrip(b"\n"))

    assert only(told(suite)).startswith("one/stdout.expected.jsonl:3: not what")


def test_a_log_of_another_layout_is_told(suite: Path) -> None:
    chunks = [*answer("a", "b", "c", "d")]
    write_scenario(suite / "two", events=[HEADER, *chunks], layout="packed")

    assert "two/session.jsonl:4: not what normalizing makes of it" in first_lines(told(suite))


def test_a_log_that_was_copied_in_is_told(suite: Path) -> None:
    edit(suite / "one" / SESSION, ',"tokens":1', "")

    problem = only(told(suite))

    assert problem.startswith("one/session.jsonl:1: the log is literal")
    assert "hint: run refresh for one" in problem


def test_a_log_that_is_not_compared_is_the_authors(suite: Path) -> None:
    two = write_scenario(suite / "two", steps=STEPS[:2])
    edit(two / SESSION, ',"tokens":1', "")

    assert told(suite) == []


def test_logs_of_a_suite_without_logs_may_be_missing(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, log="none")
    (suite / "one" / SESSION).unlink()

    assert told(suite) == []


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (SESSION, b'{"type":"session"', "session.jsonl:1"),
        (SESSION, b"", "session.jsonl:1: column 1: this log is empty"),
        (SESSION, b"\xef\xbb\xbf{}\n", "byte-order mark"),
        (TRANSCRIPT, b"[1]\n", "stdout.expected.jsonl:1: this line is not a JSON object"),
        (TRANSCRIPT, b'{"a":\n', "stdout.expected.jsonl:1: column"),
    ],
)
def test_a_file_that_can_not_be_read_is_told(
    suite: Path, name: str, data: bytes, words: str
) -> None:
    (suite / "one" / name).write_bytes(data)

    assert words in "\n".join(told(suite))


# waiting


CANCEL: Json = {"op": "promptAndCancel", "text": "hi"}
WAIT: Json = {"op": "waitForTurnStart"}
HANG: Json = {"patches": [{"at": 1, "entry": {"kind": "hang"}}]}


@pytest.mark.parametrize(
    ("step", "origin", "document", "problem"),
    [
        (CANCEL, "authored", None, True),
        (CANCEL, "authored", HANG, False),
        (CANCEL | {"hanging": 1}, "authored", None, False),
        (CANCEL | {"wait": WAIT}, "authored", None, False),
        (CANCEL | {"waitForFile": {"path": "x"}}, "recorded", None, False),
        (CANCEL | {"hanging": 1}, "recorded", None, True),
        (CANCEL, "recorded", HANG, True),
    ],
)
def test_a_cancel_needs_something_to_wait_for(
    suite: Path, step: Json, origin: str, document: Json, *, problem: bool
) -> None:
    steps = [*STEPS[:2], step]
    two = write_scenario(suite / "two", steps=steps, origin=origin, overridden=document is not None)
    if document is not None:
        (two / OVERRIDE).write_text(json.dumps(document))

    problems = told(suite)

    assert bool(problems) == problem
    if problem:
        assert only(problems).startswith(
            "two/input.json: steps.2: promptAndCancel has nothing to wait for\n"
        )


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([], True),
        ([{"op": "cancel"}], False),
        ([{"op": "restartAgent"}], False),
        ([{"op": "notify", "method": "session/cancel"}], False),
        ([{"op": "notify", "method": "other"}], True),
        ([{"op": "sendRaw", "line": '{"method":"session/cancel"}'}], False),
        ([{"op": "sendRaw", "line": "{}"}], True),
        ([{"op": "prompt", "text": "x", "detach": True}], False),
        ([{"op": "promptContent", "content": [], "detach": True}], False),
        ([{"op": "promptContent", "content": []}], True),
    ],
)
def test_a_call_that_hangs_needs_a_cancel_or_a_restart(
    suite: Path, steps: list[Json], *, problem: bool
) -> None:
    two = write_scenario(suite / "two", steps=[*STEPS, *steps], overridden=True)
    (two / OVERRIDE).write_text(json.dumps(HANG))

    problems = told(suite)

    assert bool(problems) == problem
    if problem:
        assert only(problems).startswith(
            "two/input.json: a model call hangs, and no step cancels or restarts"
        )


# any text


def test_a_credential_is_told_with_its_place_and_never_shown(suite: Path) -> None:
    (suite / "one" / "workspace").mkdir()
    (suite / "one" / "workspace" / "a.env").write_text(f"# a\nX={KEY}\n")

    problem = only(told(suite))

    assert problem.startswith("one/workspace/a.env:2: column 3: an API key\n")
    assert KEY not in problem


def test_the_value_of_a_key_like_variable_is_told(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct horse battery")
    edit(suite / "one" / SCENARIO, "two words", "correct horse battery")

    assert "one/scenario.toml:1: column" in only(told(suite))


@pytest.mark.parametrize("mark", ["<<<<<<< HEAD", ">>>>>>> branch", "||||||| base"])
def test_a_merge_conflict_marker_is_told(suite: Path, mark: str) -> None:
    path = suite / "one" / SCENARIO
    path.write_text(path.read_text() + f"# end\n{mark}\n")

    assert "a merge-conflict marker" in "\n".join(told(suite))


def test_a_file_over_the_suites_budget_is_told(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, max_fixture_bytes=1000)
    (suite / "one" / "workspace").mkdir()
    (suite / "one" / "workspace" / "big").write_bytes(b"x" * 1001)
    (suite / "one" / "workspace" / "link").symlink_to("big")

    assert first_lines(told(suite)) == ["one/workspace/big: 1001 bytes, and the suite allows 1000"]


@pytest.mark.parametrize(
    ("name", "old", "new", "what"),
    [
        (SESSION, '"turn":1,', '"turn":1,"turn":1,', ":4: the key 'turn' stands twice"),
        (TRANSCRIPT, '"id":2', '"id":2,"n":18446744073709551616', ":3: the integer"),
        (INPUT, '"op":', '"op":"initialize","op":', ": the key 'op' stands twice"),
    ],
)
def test_what_readers_of_json_take_differently_is_told(
    suite: Path, name: str, old: str, new: str, what: str
) -> None:
    edit(suite / "one" / name, old, new)

    assert any(line.startswith(f"one/{name}{what}") for line in first_lines(told(suite)))


# pins


def test_two_pins_of_one_class_are_told(suite: Path) -> None:
    write_scenario(suite / "two", pins_header=True)

    lines = first_lines(told(suite))

    assert "suite.toml: header class 'default' has 2 pins: one, two" in lines
    assert any("both sidecars are those of one too" in line for line in lines)


def test_a_class_without_pin_is_told_where_a_session_has_a_header(suite: Path) -> None:
    write_scenario(suite / "one", pins_header=False)
    (suite / "one" / SYSTEM).unlink()
    (suite / "one" / TOOLS).unlink()

    assert only(told(suite)).startswith("suite.toml: header class 'default' has no pin\n")

    write_scenario(suite / "one", events=answer("x"))
    assert told(suite) == []


def test_an_unknown_header_class_is_told(suite: Path) -> None:
    write_scenario(suite / "two", header_class="defualt")

    assert only(told(suite)).startswith(
        "two/scenario.toml: header class 'defualt' is not in suite.toml"
    )


def test_two_classes_have_a_pin_each(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, header_classes=["default", "other"])
    header = event("request/header", {"header": {"system": "Another.", "tools": []}})
    events = [header, *answer("x")]
    write_scenario(suite / "two", events=events, header_class="other", pins_header=True)

    assert told(suite) == []


def test_sidecars_that_refresh_would_write_otherwise_are_told(suite: Path) -> None:
    edit(suite / "one" / TOOLS, "  ", " ")

    assert only(told(suite)).startswith(
        "one/tool-schemas.expected.json: not in the form that refresh writes"
    )


def test_sidecars_that_can_not_be_read_are_told(suite: Path) -> None:
    (suite / "one" / TOOLS).write_text("[]")

    assert only(told(suite)).startswith("one/system-prompt.expected.md: 1 prompts beside 0")


def test_a_header_that_stands_twice_in_its_sidecars_is_told(suite: Path) -> None:
    one = suite / "one"
    text = (one / SYSTEM).read_text()
    (one / SYSTEM).write_text(text + text.replace("header 1", "header 2"))
    tools = json.loads((one / TOOLS).read_text())
    (one / TOOLS).write_text(json.dumps(tools * 2, indent=2) + "\n")

    assert only(told(suite)).startswith("one/system-prompt.expected.md: the same header stands")


@pytest.mark.parametrize("name", [SESSION, INPUT, TRANSCRIPT, SYSTEM])
@pytest.mark.parametrize("as_link", [True, False])
def test_what_is_no_file_is_told(suite: Path, name: str, *, as_link: bool) -> None:
    path = suite / "one" / name
    path.unlink()
    if as_link:
        path.symlink_to("nowhere")
    else:
        path.mkdir()

    assert only(told(suite)) == (
        f"one/{name}: it is no file, or leads to none\n  hint: put a file in its place"
    )


def test_a_directory_that_is_called_as_a_log_is_told(suite: Path) -> None:
    (suite / "one" / "session.1.jsonl").mkdir()

    assert only(told(suite)).startswith("one/session.1.jsonl: a scenario has no such file")


def test_a_workspace_that_is_no_directory_is_told(suite: Path) -> None:
    (suite / "one" / "workspace").write_text("")

    assert only(told(suite)).startswith("one/workspace: it is no directory")


def test_sidecars_of_another_encoding_are_told(suite: Path) -> None:
    (suite / "one" / SYSTEM).write_bytes(b"caf\xe9\n")

    assert only(told(suite)).startswith(f"one/{SYSTEM}: the prompts are not UTF-8 at byte 3\n")


def test_sidecars_that_are_nested_without_end_are_told(suite: Path) -> None:
    (suite / "one" / TOOLS).write_text("[" * 100_000)

    assert "the tool schemas are not JSON: " in only(told(suite))


@pytest.mark.parametrize("name", ["suite.toml", "agent.toml"])
def test_a_credential_beside_the_scenarios_is_told(suite: Path, name: str) -> None:
    with (suite / name).open("a") as file:
        file.write(f'env = {{ A = "{KEY}" }}\n')
    (suite / ".env").write_text(f"A={KEY}\n")

    problem = only(told(suite))

    assert problem.startswith(f"{name}:")
    assert "column 14: an API key" in problem
    assert KEY not in problem
