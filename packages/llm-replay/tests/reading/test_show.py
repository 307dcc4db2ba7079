import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from log_kit import (
    FINISH,
    HEADER,
    Json,
    Told,
    asked,
    event,
    event_lists,
    json_values,
    persisted,
    row,
    rows,
    text,
    write_log,
)

from llm_replay.session_log import dump_session_log, read_session_log
from llm_replay.show import render, summary_of

USAGE = {"type": "usage", "usage": {"inputTokens": 812, "outputTokens": 95}}


def call(name: str, *parts: str) -> list[Json]:
    return [
        {"type": "tool-call-delta", "index": 1, "id": "c", "name": name, "argumentsDelta": part}
        for part in parts
    ]


def test_show_tells_each_session_call_by_call(told: Told, tmp_path: Path) -> None:
    failure = {"code": "SERVER", "message": "too busy"}
    thinking = {"type": "reasoning-delta", "index": 0, "text": "hm\n hm"}
    write_log(
        tmp_path / "session.jsonl",
        asked(),
        *rows(text("Let me "), text("look.\x1b[0m"), *call("bash", '{"command":', '"ls"}'), USAGE),
        row({"type": "finish", "reason": {"kind": "tool-calls"}}),
        asked(call=2, step=2),
        *rows({"type": "finish", "reason": {"kind": "error", "failure": failure}}, step=2),
        asked(call=3, step=2, purpose="compaction"),
        event("compaction/end"),
        asked(call=4, step=3),
        row(thinking, step=3),
        event("assistant/message"),
        asked(call=5, turn=2),
        row(text("cut"), turn=2),
        header={**HEADER, "lineage": "1", "tokens": 1},
    )
    write_log(tmp_path / "session.1.jsonl", header={"type": "session"})

    assert told("show", ".") == (
        "session.jsonl\n"
        "  session s1, lineage 1, normalized, 16 events, 5 calls\n"
        "  call  turn/step  ended       chunks  tokens in/out      time  said\n"
        "     1  1/1        tool-calls       6         812/95            "
        'Let me look.\\x1b[0m  → bash {"comma…\n'
        "     2  1/2        error            1                           ! SERVER: too busy\n"
        "     3  1/2 (c)    hole             0                           "
        "! It has no finish chunk, and the n…\n"
        "     4  1/3        -                1                           (hm hm)\n"
        "     5  2/1        hang             1                           cut\n"
        "\n"
        "session.1.jsonl\n"
        "  session (without an id), 0 events, 0 calls\n"
    )


def test_show_tells_times_where_a_log_has_them(told: Told, tmp_path: Path) -> None:
    noon = 1_764_590_400_000
    events = persisted([*rows(text("a"), FINISH), *rows(FINISH, step=2)], start=noon, gap=1500)
    events[2]["time"] = "later"
    header = {**HEADER, "createdAt": noon}
    path = tmp_path / "a.jsonl"
    path.write_bytes(dump_session_log(header, events, layout="plain", projected=False))
    out = told("show", "a.jsonl")

    assert "session s1, 2025-12-01 12:00:00 UTC, 3 events, 2 calls" in out
    assert "     1  1/1        stop             2                    1.5 s  a\n" in out
    assert "     2  1/1" not in out


def test_show_for_programs_is_json(told: Told, tmp_path: Path) -> None:
    block = {"type": "tool-call", "id": "c", "name": "read", "arguments": "{}"}
    write_log(
        tmp_path / "a.jsonl",
        *rows(
            text("ab"),
            {"type": "block-end", "index": 0, "block": {"type": "text", "text": "AB"}},
            *call("bash", "{"),
            {"type": "block-end", "index": 1, "block": block},
            {"type": "block-end", "index": 2, "block": None},
            USAGE,
            FINISH,
        ),
    )
    [session] = json.loads(told("show", "--json", "a.jsonl"))

    assert session.pop("calls") == [
        {
            "call": 1,
            "turn": 1,
            "step": 1,
            "purpose": "turn",
            "kind": "chunks",
            "finish": "stop",
            "failure": None,
            "chunks": 7,
            "text": "AB",
            "reasoning": "",
            "toolCalls": [{"name": "read", "arguments": "{}"}],
            "usage": USAGE["usage"],
            "ms": None,
            "problem": None,
        }
    ]
    assert session == {
        "file": "a.jsonl",
        "id": "s1",
        "lineage": None,
        "createdAt": 5,
        "tokens": False,
        "events": 7,
    }


def test_show_shows_what_a_terminal_cannot(told: Told, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", *rows(text("\ud83d\x00é"), FINISH))

    assert "\\ud83d\\x00é\n" in told("show", "a.jsonl")


@given(event_lists(), json_values, st.floats(allow_nan=False, allow_infinity=False))
def test_any_log_can_be_shown(events: list[Json], odd: object, created_at: float) -> None:
    header = {**HEADER, "createdAt": created_at}
    odd_end = [row({"type": "usage", "usage": odd}), row({"type": "finish", "reason": odd})]
    odd_block = row({"type": "block-end", "index": odd, "block": {"text": odd, "type": odd}})
    records = [*events, odd_block, *odd_end]
    written = dump_session_log(header, records, layout="plain", projected=False)
    summary = summary_of(read_session_log(written), primary=False)

    shown = render(summary, width=80).split("\n")
    assert all(len(line) <= 80 and line.isprintable() for line in shown)
