import asyncio
import json
import time
from pathlib import Path

import pytest
from replay_kit import Request, Runtime, collect, install, text_call, texts, told, write_log

from llm_replay.exceptions import (
    PatternTimeoutError,
    PlaceholderError,
    RecordedFailureError,
    UnresolvedRootError,
)
from llm_replay.verdict import read_verdict

HELLO = [{"role": "user", "content": [{"type": "text", "text": "say hello to id-17"}]}]


def served(runtime: Runtime) -> list[str]:
    return texts(asyncio.run(collect(runtime.stream(Request(messages=HELLO)))))


def test_tokens_of_a_normalized_log_are_served_as_live_directories(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = text_call("in {{cwd}}/a", " plain", "{{home}} {{lit}}cwd}}")
    install(runtime, write_log(tmp_path / "s.jsonl", call, tokens=1), environ={"HOME": "/h"})

    assert served(runtime) == [f"in {tmp_path}/a", " plain", "/h {{cwd}}"]


def test_a_root_that_this_process_does_not_know_is_a_fault(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call("{{spill}}/x"), tokens=1)
    install(runtime, log, verdict=verdict_dir)

    with pytest.raises(UnresolvedRootError):
        served(runtime)
    assert told(verdict_dir)[1:] == ["call 0.1", "fault unresolved-root 0.1"]


def test_in_a_literal_log_only_cwd_and_placeholders_are_live(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = text_call("{{cwd}} {{home}} {{lit}}", "{{fromRequest:id-\\d+}}")
    install(runtime, write_log(tmp_path / "s.jsonl", call), environ={"HOME": "/h"})

    assert served(runtime) == [f"{tmp_path} {{{{home}}}} {{{{lit}}}}", "id-17"]


def test_placeholders_of_a_normalized_log_are_not_live(runtime: Runtime, tmp_path: Path) -> None:
    call = text_call("{{lit}}fromRequest:id-\\d+}}")
    install(runtime, write_log(tmp_path / "s.jsonl", call, tokens=1))

    assert served(runtime) == ["{{fromRequest:id-\\d+}}"]


def test_in_an_override_tokens_and_placeholders_are_live_once(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chunks = text_call("{{cwd}} {{fromRequest:say (.*)}} {{lit}}home}}", "plain")
    entry = {"kind": "throw", "chunks": chunks, "message": "of {{fromRequest:id-.*}}", "code": "C"}
    override = tmp_path / "replay.override.json"
    override.write_text(json.dumps([entry]))
    log = write_log(tmp_path / "s.jsonl", tokens=1)
    install(runtime, log, override_file=override, environ={"HOME": "/h"})

    async def run() -> None:
        async for chunk in runtime.stream(Request(messages=[{"text": "say {{home}} id-1"}])):
            seen.extend(texts([chunk]))

    seen: list[str] = []
    with pytest.raises(RecordedFailureError, match="of id-1"):
        asyncio.run(run())
    assert seen == [f"{tmp_path} {{{{home}}}} id-1 {{{{home}}}}", "plain"]


def test_a_script_without_a_log_is_told_by_the_name_of_the_sidecar(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    override = tmp_path / "replay.override.json"
    override.write_text('[{"kind": "hang"}]')
    install(runtime, None, override_file=override, verdict=verdict_dir)

    [file] = read_verdict(verdict_dir)
    assert file.facts[0]["scripts"] == [{"file": "replay.override.json", "calls": 1}]


def test_an_override_with_tokens_alone_is_served_without_a_look_at_the_request(
    runtime: Runtime, tmp_path: Path
) -> None:
    override = tmp_path / "replay.override.json"
    override.write_text(json.dumps([{"kind": "chunks", "chunks": text_call("{{home}}")}]))
    install(runtime, None, override_file=override, environ={"HOME": "/h"})

    assert served(runtime) == ["/h"]


def test_a_placeholder_reads_the_request_as_it_was_when_the_stream_was_asked_for(
    runtime: Runtime, tmp_path: Path
) -> None:
    install(runtime, write_log(tmp_path / "s.jsonl", text_call("{{fromRequest:id-\\d+}}")))
    messages = [{"role": "user", "content": ["id-1"]}]
    stream = runtime.stream(Request(messages=messages))
    messages[0]["content"] = ["id-2"]

    assert texts(asyncio.run(collect(stream))) == ["id-1"]


def test_a_placeholder_that_finds_nothing_is_a_fault(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    log = write_log(tmp_path / "s.jsonl", text_call("{{fromRequest:nobody}}"))
    handle = install(runtime, log, verdict=verdict_dir)

    with pytest.raises(PlaceholderError):
        served(runtime)
    assert told(verdict_dir)[1:] == ["call 0.1", "fault placeholder 0.1"]
    with pytest.raises(PlaceholderError):
        handle.assert_consumed()


def test_others_go_on_while_a_pattern_takes_too_long(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    async def run() -> int:
        stream = runtime.stream(Request(messages=[{"text": "a" * 40}]))
        reading = asyncio.ensure_future(collect(stream))
        turns = 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        with pytest.raises(PatternTimeoutError):
            await reading
        return turns

    log = write_log(tmp_path / "s.jsonl", text_call("{{fromRequest:(?:a|a|a)*[bc]}}"))
    install(runtime, log, verdict=verdict_dir)
    start = time.monotonic()

    assert asyncio.run(run()) > 10
    assert time.monotonic() - start < 30
    assert told(verdict_dir)[-1] == "fault pattern-timeout 0.1"


def test_lone_surrogates_and_numbers_past_orjson_are_served(
    runtime: Runtime, tmp_path: Path
) -> None:
    log = tmp_path / "s.jsonl"
    write_log(log, text_call("XX {{home}}"), tokens=1)
    log.write_bytes(log.read_bytes().replace(b"XX", b"\\ud83d"))
    install(runtime, log, environ={"HOME": "/h"})

    assert served(runtime) == ["\ud83d /h"]
