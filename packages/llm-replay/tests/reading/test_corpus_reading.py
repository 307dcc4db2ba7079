"""Recordings and cases with known answers, made by running the reference."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from log_kit import Json

from llm_replay.config import ReplayConfig
from llm_replay.derive import derive_replay_script
from llm_replay.exceptions import (
    OverrideError,
    PlaceholderError,
    ReplayError,
    ScriptError,
    SessionLogError,
    UnfinishedCallError,
)
from llm_replay.packing import pack_events, project_row
from llm_replay.placeholders import resolve_scripted_entry
from llm_replay.script import load_replay_script, load_session_scripts
from llm_replay.session_log import dump_session_log, parse_session_log, read_session_log

# What we do otherwise on purpose: a header is read strictly, and a seq stays a safe integer.
STRICTER = {"header line content is not checked at all", "BAD member seq overflow"}

KINDS: list[tuple[str, type[ReplayError]]] = [
    ("session snapshot line", SessionLogError),
    ("ended without a finish chunk", UnfinishedCallError),
    ("fixture not found", ScriptError),
    ("LLM stream call without rawOutput", ScriptError),
    ("fromRequest", PlaceholderError),
    ("override", OverrideError),
    ("is not valid JSON", OverrideError),
]


def scripts_of(config: ReplayConfig) -> list[Json]:
    return [
        {
            "recordedId": script.recorded_id,
            "createdAt": script.created_at,
            "entries": script.entries,
            "primary": script.primary,
        }
        for script in load_session_scripts(config)
    ]


def derived(log: str) -> list[Json]:
    return derive_replay_script(parse_session_log(log))


def resolved(entry: Json, messages: list[Json]) -> Json:
    return resolve_scripted_entry(entry, SimpleNamespace(messages=messages))


def config_of(directory: Path) -> ReplayConfig:
    override = directory / "replay.override.json"
    children = [
        path for path in directory.glob("session.*.jsonl") if path.suffixes[0][1:].isdigit()
    ]
    return ReplayConfig(
        file=directory / "session.jsonl",
        override_file=override if override.exists() else None,
        child_files=sorted(children, key=lambda path: int(number(Path(path)))),
    )


def number(path: Path) -> str:
    return path.name.split(".")[1]


def judge(case: Json, key: str, run: Callable[..., Any], *given: object) -> bool:
    """Compare what `run` gives with what the reference gave; return whether it refused."""
    expected = case[key]
    try:
        found = run(*given)
    except ReplayError as error:
        refusal = error
    else:
        assert expected["ok"], f"{case['name']} must be refused: {expected.get('error')}"
        assert found == expected["value"], case["name"]
        return False
    if expected["ok"]:
        assert case["name"] in STRICTER, refusal
    else:
        kind = next(kind for words, kind in KINDS if words in expected["error"])
        assert isinstance(refusal, kind), refusal
    return True


def cases(corpus: Path, name: str) -> list[Json]:
    found: list[Json] = json.loads((corpus / "cases" / f"{name}.json").read_bytes())["cases"]
    return found


def test_every_recording_derives_exactly_or_is_refused(corpus: Path) -> None:
    outcomes = []
    for answer in sorted(corpus.glob("recordings/*/*/scripts.json")):
        case = {"name": str(answer), "scripts": json.loads(answer.read_bytes())}
        outcomes.append(judge(case, "scripts", scripts_of, config_of(answer.parent)))

    refused = sum(outcomes)
    assert (len(outcomes) - refused, refused) == (89, 3)


def test_every_recorded_log_survives_every_layout_and_form(corpus: Path) -> None:
    count = 0
    for path in sorted(corpus.glob("recordings/*/*/session*.jsonl")):
        data = path.read_bytes()
        log = read_session_log(data, name=str(path))
        for layout in ("plain", "packed"):
            kept = dump_session_log(log.header.raw, log.events, layout=layout, projected=False)
            assert read_session_log(kept).events == log.events
        canonical = dump_session_log(log.header.raw, log.events, layout="packed", projected=True)
        assert len(canonical.splitlines()) == len([line for line in data.splitlines() if line])
        count += 1

    assert count == 116


def test_cases_of_deriving(corpus: Path) -> None:
    for case in cases(corpus, "derive"):
        judge(case, "derive", derived, case["logText"])


def test_cases_of_expanding_packed_rows(corpus: Path) -> None:
    refused = {
        case["name"]
        for case in cases(corpus, "packed-decode")
        if judge(case, "parseSessionLog", parse_session_log, case["logText"])
    }

    assert refused >= STRICTER


def test_cases_of_packing_down_to_the_order_of_keys(corpus: Path) -> None:
    for case in cases(corpus, "pack-encode"):
        found = pack_events(case["events"])
        assert json.dumps(found) == json.dumps(case["packChunkRuns"]["value"]), case["name"]
        assert project_row(found[0]).keys() & {"seq", "seq0", "time", "time0"} == set()


def test_cases_of_overrides(corpus: Path, tmp_path: Path) -> None:
    for place, case in enumerate(cases(corpus, "override")):
        directory = tmp_path / str(place)
        directory.mkdir()
        (directory / "replay.override.json").write_text(case["overrideText"])
        if case["logText"] is not None:
            (directory / "session.jsonl").write_text(case["logText"])
        judge(case, "loadReplayScript", load_replay_script, config_of(directory))


def test_cases_of_several_sessions(corpus: Path, tmp_path: Path) -> None:
    for place, case in enumerate(cases(corpus, "script-lists")):
        directory = tmp_path / str(place)
        directory.mkdir()
        names = [
            "session.jsonl",
            *(f"session.{n}.jsonl" for n in range(1, 1 + len(case["children"]))),
        ]
        for name, log in zip(names, [case["primary"], *case["children"]], strict=True):
            if log is not None:
                (directory / name).write_text(log)
        config = ReplayConfig(
            file=directory / names[0],
            child_files=[directory / name for name in names[1:]],
            override_file=write_override(directory, case["override"]),
        )
        judge(case, "loadSessionScripts", scripts_of, config)


def write_override(directory: Path, document: object) -> Path | None:
    if document is None:
        return None
    path = directory / "replay.override.json"
    path.write_text(json.dumps(document))
    return path


def test_cases_of_placeholders(corpus: Path) -> None:
    for case in cases(corpus, "from-request"):
        judge(case, "resolve", resolved, case["entry"], case["messages"])


@pytest.mark.parametrize("name", ["derive", "packed-decode", "override", "script-lists"])
def test_a_case_named_bad_is_one_that_must_be_refused(corpus: Path, name: str) -> None:
    named = {case["name"] for case in cases(corpus, name) if case["name"].startswith("BAD")}

    assert named
