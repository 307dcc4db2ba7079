import gc
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import (
    FINISH,
    HEADER,
    Json,
    asked,
    chunks,
    event,
    event_lists,
    hang,
    lines,
    row,
    rows,
    text,
    write_log,
)

from llm_replay.config import ReplayConfig
from llm_replay.derive import derive_calls
from llm_replay.exceptions import ReplayError, ScriptError, SessionLogError, UnfinishedCallError
from llm_replay.script import (
    SessionScript,
    load_replay_script,
    load_session_scripts,
    read_calls,
)
from llm_replay.session_log import dump_session_log, read_session_log

THROW: Json = {"kind": "throw", "chunks": [], "message": "no", "code": "SERVER"}


def said(*words: str) -> list[Json]:
    return [record for word in words for record in rows(text(word), FINISH)]


def override(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def refusal(config: ReplayConfig) -> str:
    with pytest.raises(ReplayError) as caught:
        load_session_scripts(config)
    return str(caught.value)


def test_a_session_is_a_script(tmp_path: Path) -> None:
    log = write_log(tmp_path / "session.jsonl", *said("a", "b"), header={**HEADER, "lineage": "1"})

    assert load_session_scripts(ReplayConfig(file=log)) == [
        SessionScript(
            recorded_id="s1",
            created_at=5,
            entries=[chunks(text("a"), FINISH), chunks(text("b"), FINISH)],
            primary=True,
            index=0,
            file=str(log),
            lineage="1",
            tokens=False,
            overridden=frozenset(),
        )
    ]


def test_scripts_stand_in_the_order_in_which_live_sessions_take_them(tmp_path: Path) -> None:
    ages = {"session.jsonl": 9, "session.1.jsonl": 3, "session.2.jsonl": 1, "session.3.jsonl": 3}
    logs = [
        write_log(tmp_path / name, header={**HEADER, "id": name, "createdAt": age})
        for name, age in ages.items()
    ]
    scripts = load_session_scripts(ReplayConfig(file=logs[0], child_files=logs[1:]))

    assert [(script.index, script.primary) for script in scripts] == [
        (0, True),
        (2, False),
        (1, False),
        (3, False),
    ]


def test_scripts_with_lineages_stand_in_their_order_and_times_do_not_matter(tmp_path: Path) -> None:
    lineages = ["1", "1/1.1.10", "1/1.1.2", "2"]
    logs = [
        write_log(tmp_path / f"{place}.jsonl", header={**HEADER, "lineage": lineage})
        for place, lineage in enumerate(lineages)
    ]
    scripts = load_session_scripts(ReplayConfig(file=logs[0], child_files=logs[1:]))

    assert [script.lineage for script in scripts] == ["1", "1/1.1.2", "1/1.1.10", "2"]


def test_a_child_begins_behind_what_it_inherited_and_a_primary_does_not(tmp_path: Path) -> None:
    header = {**HEADER, "seedLength": 2}
    log = write_log(tmp_path / "a.jsonl", *said("theirs", "own"), header=header)
    primary, child = load_session_scripts(ReplayConfig(file=log, child_files=[log]))

    assert len(primary.entries) == 2
    assert child.entries == [chunks(text("own"), FINISH)]


def test_what_is_inherited_may_be_counted_from_the_end_of_a_packed_log(tmp_path: Path) -> None:
    header = {**HEADER, "seedLength": -2}
    primary = write_log(tmp_path / "a.jsonl")
    packed: Json = {"turn": 1, "step": 1, "index": 0, "dt": [0, 0], "texts": ["x", "y", "z"]}
    records = ({"type": "text-chunks", "data": packed}, row(FINISH))
    child = write_log(tmp_path / "b.jsonl", *records, header=header)
    config = ReplayConfig(file=primary, child_files=[child])

    assert load_session_scripts(config)[1].entries == [chunks(text("z"), FINISH)]
    write_log(child, [], header=header)
    with pytest.raises(SessionLogError, match=":2:1: this line is not a JSON object"):
        load_session_scripts(config)


def test_a_call_without_an_end_is_refused_with_file_and_line(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", event("turn/start"), *said("a"), row(text("b"), step=2))

    assert refusal(ReplayConfig(file=log)) == (
        f"{log}:5: the model call of turn 1, step 2 never finished\n"
        "  It has no finish chunk, and the log ends.\n"
        '  hint: add replay.override.json: a list of all entries, this one "throw" or "hang"'
    )


def test_an_announced_call_without_chunks_is_refused_at_its_announcement(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", asked(), asked(call=2), *said("a"))

    with pytest.raises(UnfinishedCallError, match=r"a\.jsonl:2: the model call of turn 1, step 1"):
        load_session_scripts(ReplayConfig(file=log))


def test_no_log_at_all_is_refused() -> None:
    assert refusal(ReplayConfig()) == (
        "llm-replay: no session log is named\n"
        "  hint: set DSH_SNAPSHOT_FILE, or file in the configuration"
    )


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl")
    missing = tmp_path / "b.jsonl"
    told = f"{missing}: there is no such file\n  hint: record the scenario"

    assert refusal(ReplayConfig(file=missing)) == told
    assert refusal(ReplayConfig(file=log, child_files=[missing])) == told


def test_a_log_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    told = f"{tmp_path}: this file can't be read: Is a directory"

    assert refusal(ReplayConfig(file=tmp_path)) == told
    replaced = override(tmp_path / "o.json", [])
    assert refusal(ReplayConfig(file=tmp_path, override_file=replaced)) == told


def test_a_malformed_line_is_refused_with_its_place(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", {"type": "text-chunks", "data": None})

    assert refusal(ReplayConfig(file=log)) == (
        f"{log}:2:23: a malformed text-chunks row: data must be an object"
    )


def test_blank_lines_and_lone_surrogates_are_read_on_the_careful_way(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text(lines(*said("\ud83d")).replace("\n", "\n\n"))

    assert load_replay_script(ReplayConfig(file=log)) == [chunks(text("\ud83d"), FINISH)]


def test_a_list_replaces_the_script_of_a_log_that_need_not_be_there(tmp_path: Path) -> None:
    replaced = override(tmp_path / "o.json", [{"kind": "hang"}, THROW])
    log = write_log(tmp_path / "a.jsonl", row(text("cut")), header={**HEADER, "tokens": 1})
    nameless = ReplayConfig(override_file=replaced)
    missing = ReplayConfig(file=tmp_path / "b.jsonl", override_file=replaced)

    assert load_replay_script(nameless) == [{"kind": "hang"}, THROW]
    assert load_session_scripts(missing)[0].recorded_id == ""
    [script] = load_session_scripts(ReplayConfig(file=log, override_file=replaced))
    assert (script.recorded_id, script.tokens) == ("s1", True)
    assert sorted(script.overridden) == [0, 1]


def test_a_patch_changes_one_call_and_fills_an_announced_hole(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", asked(), asked(call=2), *said("a"), asked(call=3))
    patched = override(tmp_path / "o.json", {"patches": [{"at": 0, "entry": THROW}]})
    [script] = load_session_scripts(ReplayConfig(file=log, override_file=patched))

    assert script.entries == [THROW, chunks(text("a"), FINISH), hang()]
    assert script.overridden == {0}


def test_a_patch_does_not_fill_a_hole_that_no_call_announced(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", row(text("cut")))
    patched = override(tmp_path / "o.json", {"patches": [{"at": 0, "entry": THROW}]})

    assert "never finished" in refusal(ReplayConfig(file=log, override_file=patched))


def test_sessions_are_overridden_by_the_numbers_of_their_files(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", *said("a"))
    document = {"sessions": {"1": {"patches": [{"at": 1, "entry": THROW}]}, "2": [THROW]}}
    config = ReplayConfig(
        file=log, child_files=[log, log], override_file=override(tmp_path / "o.json", document)
    )
    entries = [script.entries for script in load_session_scripts(config)]

    kept = chunks(text("a"), FINISH)
    assert entries == [[kept], [kept, THROW], [THROW]]
    assert load_replay_script(config) == [kept]


def test_an_override_that_is_not_there_is_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", *said("a"))

    assert refusal(ReplayConfig(file=log, override_file=tmp_path / "o.json")) == (
        f"{tmp_path / 'o.json'}: 1 problem\n"
        "  this file can't be read: No such file or directory\n"
        "  hint: name a file that is there, or none"
    )


def test_a_patch_behind_the_end_is_refused_with_the_override(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", *said("a"))
    patched = override(tmp_path / "o.json", {"patches": [{"at": 2, "entry": THROW}]})

    assert refusal(ReplayConfig(file=log, override_file=patched)) == (
        f"{patched}: 1 problem\n"
        "  patch at 2: the script has 1 call; 1 appends, more is past the end\n"
        "  hint: see `llm-replay show` for the calls of a log"
    )


def test_a_model_row_that_normalizing_cannot_have_made_is_refused(tmp_path: Path) -> None:
    bad = said("a", "{{uuid:1}}")
    log = write_log(tmp_path / "a.jsonl", *bad, header={**HEADER, "tokens": 1})
    patched = override(tmp_path / "o.json", {"patches": [{"at": 1, "entry": THROW}]})

    with pytest.raises(ScriptError) as caught:
        load_session_scripts(ReplayConfig(file=log))
    assert str(caught.value) == (
        f"{log}:4: '{{{{' begins no token that is served, in '{{{{uuid:1}}}}'\n"
        "  In a log with tokens: 1, every {{ of a model row begins a served token.\n"
        "  hint: write {{lit}} for two braces that the model said"
    )
    assert len(load_replay_script(ReplayConfig(file=log, override_file=patched))) == 2
    write_log(log, *bad)
    assert len(load_replay_script(ReplayConfig(file=log))) == 2


def test_a_summary_that_normalizing_cannot_have_made_is_refused(tmp_path: Path) -> None:
    raw = [{"type": "text", "text": "{{x"}]
    summary = event("compaction/summary", llmStreamCall=True, rawOutput=raw)
    start = asked(purpose="compaction")
    log = write_log(tmp_path / "a.jsonl", start, summary, header={**HEADER, "tokens": 1})

    with pytest.raises(ScriptError, match=r"a\.jsonl:3: '{{' begins no token that is served"):
        load_session_scripts(ReplayConfig(file=log))


def test_a_failure_that_is_no_model_row_may_hold_any_token(tmp_path: Path) -> None:
    failure = {"code": "SERVER", "message": "{{uuid:1}}"}
    records = [asked(purpose="compaction"), event("compaction/end", error=failure)]
    log = write_log(tmp_path / "a.jsonl", *records, header={**HEADER, "tokens": 1})

    [entry] = load_replay_script(ReplayConfig(file=log))
    assert entry["chunks"][0]["reason"]["failure"] == failure


def test_garbage_collection_is_as_it_was_before_reading(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", *said("a"))
    read_calls(log)
    assert gc.isenabled()
    gc.disable()
    try:
        read_calls(log)
        assert not gc.isenabled()
    finally:
        gc.enable()


@given(event_lists(), st.sampled_from(["\n", "\n\n", "\r\n"]), st.integers(0, 9))
def test_the_fast_way_reads_what_the_careful_way_reads(
    tmp_path_factory: pytest.TempPathFactory, events: list[Json], end: str, seed_length: int
) -> None:
    header = {**HEADER, "seedLength": seed_length}
    written = dump_session_log(header, events, layout="packed", projected=False)
    log = tmp_path_factory.getbasetemp() / "fast.jsonl"
    log.write_bytes(written.replace(b"\n", end.encode()))
    expected = derive_calls(read_session_log(written).events, seed_length=seed_length)

    found = read_calls(log, whole=False)[1]
    assert [call.entry for call in found] == [call.entry for call in expected]
    assert [list(call.positions) for call in found] == [list(call.positions) for call in expected]


@given(st.binary() | st.binary().map(lambda data: lines().encode() + data))
def test_random_bytes_are_a_script_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    log = tmp_path_factory.getbasetemp() / "random.jsonl"
    log.write_bytes(data)
    try:
        load_session_scripts(ReplayConfig(file=log))
    except ReplayError as error:
        assert isinstance(error, SessionLogError | ScriptError)  # noqa: PT017  see the name
