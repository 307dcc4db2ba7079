"""However deeply something is nested, it is read, or refused in words of ours with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from log_kit import FINISH, HEADER, Json, Told, asked, event, lines, row, rows, text

from llm_replay.config import ReplayConfig
from llm_replay.derive import derive_calls, derive_replay_script
from llm_replay.exceptions import OverrideError, ReplayError, SessionLogError, UnfinishedCallError
from llm_replay.script import load_session_scripts, read_calls
from llm_replay.session_log import read_session_log

DEEP = 100_000
BOUND = "this is nested more than 200 levels deep"


def nested(levels: int, *, keyed: bool = False) -> Any:  # noqa: ANN401  JSON
    inner: Any = "x"
    for _ in range(levels):
        inner = {"a": inner} if keyed else [inner]
    return inner


def written(records: list[Json], levels: int) -> str:
    """Write a log with a value that is nested so deeply in the place of each `"$"`."""
    return lines(*records[1:], header=records[0]).replace('"$"', "[" * levels + "]" * levels)


MARK: Any = "$"
LOGS: dict[str, list[Json]] = {
    "turn": [HEADER, *rows(text("a"), FINISH, turn=MARK)],
    "step": [HEADER, *rows(text("a"), FINISH, step=MARK)],
    "unfinished": [HEADER, *rows(text("a"), turn=MARK, step=MARK)],
    "index": [HEADER, *rows(text("a", index=MARK), FINISH)],
    "chunk": [HEADER, row("$")],
    "chunk type": [HEADER, row({"type": "$"})],
    "reason": [HEADER, row({"type": "finish", "reason": "$"})],
    "kind": [HEADER, row({"type": "finish", "reason": {"kind": "$", "failure": {"code": "$"}}})],
    "usage": [HEADER, *rows({"type": "usage", "usage": {"inputTokens": "$"}}, FINISH)],
    "block": [HEADER, *rows({"type": "block-end", "block": {"type": "$", "text": "$"}}, FINISH)],
    "tool": [
        HEADER,
        *rows({"type": "tool-call-delta", "index": 0, "name": "$", "argumentsDelta": "$"}, FINISH),
    ],
    "in tokens": [{**HEADER, "tokens": 1}, *rows({**text("{{lit}}"), "more": "$"}, FINISH)],
    "event type": [HEADER, {"type": "$"}],
    "event data": [HEADER, {"type": "assistant/chunk", "data": "$"}],
    "announcement": [HEADER, event("llm/call", turn="$", step="$", call="$"), *rows(FINISH)],
    "turn's end": [HEADER, asked(), event("turn/end", reason={"kind": "$"})],
    "summary": [
        HEADER,
        event("compaction/summary", llmStreamCall=True, rawOutput=[{"type": "$"}], turn="$"),
    ],
    "failure": [HEADER, asked(purpose="compaction"), event("llm/retry", failure={"code": "$"})],
    "header type": [{**HEADER, "type": "$"}],
    "header version": [{**HEADER, "version": "$"}],
    "header tokens": [{**HEADER, "tokens": "$"}],
    "header lineage": [{**HEADER, "lineage": "$"}],
    "packed turn": [HEADER, {"type": "text-chunks", "data": {"turn": "$"}}],
    "packed data": [HEADER, {"type": "text-chunks", "data": "$"}],
    "packed dt": [
        HEADER,
        {
            "type": "text-chunks",
            "data": {"turn": 1, "step": 1, "index": 0, "dt": "$", "texts": ["a", "b"]},
        },
    ],
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("levels", [150, 201, 1000, 1025, DEEP])
def test_a_log_that_nests_deeply_is_read_or_refused_with_its_place(
    name: str, levels: int, tmp_path: Path, told: Told
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(written(LOGS[name], levels))
    fine = True
    for read in (
        lambda: read_session_log(path.read_bytes(), name=str(path)),
        lambda: read_calls(path),
        lambda: load_session_scripts(ReplayConfig(file=path)),
    ):
        try:
            read()
        except SessionLogError as error:
            fine = False
            assert (error.line, error.column) > (0, 0)  # noqa: PT017  either is right
        except ReplayError as error:
            assert f"{path}:" in str(error)  # noqa: PT017  either is right

    assert fine or levels > 200 or "header" in name or "packed" in name
    assert told("show", "session.jsonl", status=0 if fine else 1)
    summaries = told("show", "--json", "session.jsonl", status=0 if fine else 1)
    assert len(json.JSONDecoder().raw_decode(summaries)[0]) == fine
    assert told("pack", "session.jsonl", status=0 if fine else 1)


@pytest.mark.parametrize("keyed", [False, True])
def test_calls_of_turns_that_nest_without_end_are_told_apart_or_refused(*, keyed: bool) -> None:
    deep = nested(DEEP, keyed=keyed)
    whole = [row(FINISH, turn=deep, step=deep)]
    cut = [row(text("a"), turn=deep), row(FINISH, turn=deep)]

    assert len(derive_replay_script([*whole, *whole])) == 2
    with pytest.raises(UnfinishedCallError, match=r"the model call of turn .{,90}, step 1 never"):
        derive_replay_script(cut)
    assert [call.problem for call in derive_calls([asked(), event("turn/end", reason=deep)])]


@pytest.mark.parametrize(
    "document",
    [
        "$",
        '[{"kind":"$"}]',
        '[{"kind":"chunks","chunks":[{"type":"text-delta","index":0,"text":"a","more":"$"}]}]',
        '{"patches":[{"at":"$","entry":"$"}]}',
        '{"sessions":{"0":"$"}}',
    ],
)
@pytest.mark.parametrize("levels", [150, 201, 1000, DEEP])
def test_an_override_that_nests_deeply_is_read_or_refused_with_its_place(
    document: str, levels: int, tmp_path: Path
) -> None:
    log, override = tmp_path / "session.jsonl", tmp_path / "o.json"
    log.write_text(lines(*rows(FINISH)))
    override.write_text(document.replace('"$"', "[" * levels + "]" * levels))
    try:
        load_session_scripts(ReplayConfig(file=log, override_file=override))
    except OverrideError as error:
        assert error.problems  # noqa: PT017  either is right
        assert levels < 200 or "line 1, column " in str(error)  # noqa: PT017  either is right


def test_an_override_that_nests_too_deeply_is_told_with_row_and_column(tmp_path: Path) -> None:
    override = tmp_path / "o.json"
    override.write_text("[\n" + "[" * 250 + "]" * 251)
    with pytest.raises(OverrideError) as caught:
        load_session_scripts(ReplayConfig(file="a", override_file=override))

    assert [str(problem) for problem in caught.value.problems] == [f"line 2, column 200: {BOUND}"]


def test_the_log_is_told_what_to_do_about_its_depth() -> None:
    with pytest.raises(SessionLogError) as caught:
        read_session_log(written(LOGS["turn"], 300), name="a.jsonl")

    assert str(caught.value) == (
        f"a.jsonl:2:240: {BOUND}\n  hint: keep what is nested so deeply as a string of JSON"
    )


@pytest.mark.parametrize("first", ["[1]", "1", '"x"'])
def test_a_first_line_that_is_no_object_is_no_header(first: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f"{first}\n")

    with pytest.raises(SessionLogError, match=r"a\.jsonl:1:1: this line is not a JSON object"):
        read_calls(tmp_path / "a.jsonl")
