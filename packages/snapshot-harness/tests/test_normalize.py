import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import (
    MERGED,
    MESSAGE,
    ROOTS,
    RULES,
    RUN,
    SESSION,
    answer,
    answered,
    chunk,
    event,
    frame,
    log,
    reread,
    run,
    said,
    tool,
)

from llm_replay.session_log import read_session_log
from llm_replay.tokens import Roots, serve_chunks
from snapshot_harness.compare import compare
from snapshot_harness.exceptions import HarnessError
from snapshot_harness.fixtures import log_bytes
from snapshot_harness.json_value import Json
from snapshot_harness.normalize import (
    HeaderPair,
    Normalized,
    foreign_roots,
    normalize_fixture,
    normalize_run,
)
from snapshot_harness.rules import Rule, Rules

CHILD = "0a1b2c3d-0000-4000-8000-00000000000c"
OTHER = "0a1b2c3d-0000-4000-8000-0000000000b2"


def data(value: Json, rules: Rules = RULES) -> Json:
    """Return what becomes of the data of one event."""
    return run([log([event("x", value)])], rules=rules).logs[0].events[0]["data"]


def message(name: str, text: str = "hi") -> dict[str, Any]:
    return {"id": name, "role": "user", "content": [{"type": "text", "text": text}]}


def texts(done: Normalized) -> list[str]:
    deltas = [one["data"]["chunk"] for one in done.logs[0].events if "chunk" in one["data"]]
    return [delta["text"] for delta in deltas if delta["type"] == "text-delta"]


def becomes(token: str, **where: str) -> Rule:
    return Rule(token=token, **where)


# ids


def test_the_same_id_is_the_same_token_on_both_surfaces() -> None:
    done = run([log([event("user/message", message(MESSAGE))])], [said(f"of {MESSAGE}")])

    assert done.logs[0].header["id"] == "{{session:1}}"
    assert done.logs[0].events[0]["data"]["id"] == "{{message:1}}"
    assert done.transcript[0]["params"]["sessionId"] == "{{session:1}}"
    assert done.transcript[0]["params"]["update"]["content"]["text"] == "of {{message:1}}"


def test_ids_are_numbered_by_kind_and_first_sight() -> None:
    value = {"a": [OTHER, MESSAGE, CHILD], "b": message(MESSAGE), "sessionId": CHILD}

    assert data(value) == {
        "a": ["{{uuid:1}}", "{{message:1}}", "{{session:2}}"],
        "b": message("{{message:1}}"),
        "sessionId": "{{session:2}}",
    }


def test_logs_are_numbered_before_the_transcript_in_their_order() -> None:
    logs = [log([event("x", {"v": OTHER})]), log([], id=CHILD, parentSession=SESSION)]

    done = run(logs, [said(MESSAGE, CHILD)])

    assert done.logs[1].header["id"] == "{{session:2}}"
    assert done.logs[1].header["parentSession"] == "{{session:1}}"
    assert done.transcript[0]["params"]["sessionId"] == "{{session:2}}"
    assert done.transcript[0]["params"]["update"]["content"]["text"] == "{{uuid:2}}"


def test_numbers_do_not_hang_on_the_order_of_keys() -> None:
    first, second = {"a": OTHER, "b": MESSAGE}, {"b": MESSAGE, "a": OTHER}

    assert data(first) == data(second) == {"a": "{{uuid:1}}", "b": "{{uuid:2}}"}
    assert list(data(second)) == ["b", "a"]


def test_a_parent_that_left_no_log_is_a_session_too() -> None:
    assert run([log([], parentSession=CHILD)]).logs[0].header["parentSession"] == "{{session:2}}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"messageId": "msg_0123456"}, {"messageId": "{{message:1}}"}),
        ({"retryId": "r1"}, {"retryId": "{{id:1}}"}),
        ({"terminalId": "term-1"}, {"terminalId": "{{id:1}}"}),
        ({"toolCallId": "random1"}, {"toolCallId": "{{id:1}}"}),
        ({"parentToolCallId": "random1"}, {"parentToolCallId": "{{id:1}}"}),
        ({"toolCallId": "1.2.3"}, {"toolCallId": "1.2.3"}),
        ({"toolCallId": "1/2.1.1:1.2.3"}, {"toolCallId": "1/2.1.1:1.2.3"}),
        ({"toolCallId": "1/2.1.1.2/1.1.1:1.2.3"}, {"toolCallId": "1/2.1.1.2/1.1.1:1.2.3"}),
        ({"sessionId": ""}, {"sessionId": ""}),
        ({"sessionId": 5}, {"sessionId": 5}),
        ({"id": "no-message"}, {"id": "no-message"}),
        ({"id": "with-role", "role": 1}, {"id": "with-role", "role": 1}),
    ],
)
def test_keys_say_what_is_an_id(value: Json, expected: Json) -> None:
    assert data(value) == expected


def test_the_id_of_an_approval_is_an_id() -> None:
    events = [event(f"approval/{word}", {"id": "a1"}) for word in ("asked", "decided")]

    done = run([log(events)])

    assert [one["data"]["id"] for one in done.logs[0].events] == ["{{id:1}}", "{{id:1}}"]


def test_a_short_id_is_recognized_only_where_the_key_says_so() -> None:
    value = {"sessionId": "7", "count": "7", "text": "7 apples"}

    assert data(value) == {"sessionId": "{{session:2}}", "count": "7", "text": "7 apples"}


def test_a_long_id_is_recognized_inside_other_texts_as_a_word() -> None:
    value = {"sessionId": "ses_abcde1", "text": "in ses_abcde1, not xses_abcde1"}

    assert data(value)["text"] == "in {{session:2}}, not xses_abcde1"


@pytest.mark.parametrize("word", ["assistant", "read_file", "TERMINAL", "1234567"])
def test_an_id_that_may_be_a_word_is_one_only_where_the_key_says_so(word: str) -> None:
    value = {"sessionId": word, "role": word, "text": f"{word} is a word", "list": [word]}

    assert data(value) == value | {"sessionId": "{{session:2}}"}


@pytest.mark.parametrize("name", ["12345678", "abcdefgh1", "AbCdEfGh", "abcdefghijklmnopqrst"])
def test_an_id_that_is_no_word_is_recognized_anywhere(name: str) -> None:
    assert data({"sessionId": name, "text": f"in {name}."})["text"] == "in {{session:2}}."


@pytest.mark.parametrize("key", ["type", "role", "method", "sessionUpdate", "jsonrpc"])
def test_the_words_of_the_formats_are_no_ids(key: str) -> None:
    assert data({"sessionId": OTHER, key: OTHER}) == {"sessionId": "{{session:2}}", key: OTHER}


@pytest.mark.parametrize("key", ["type", "role", "method", "sessionUpdate", "jsonrpc", "x"])
def test_the_runs_own_directories_are_tokens_under_every_key(key: str) -> None:
    assert data({key: f"{RUN}/cwd/a"}) == {key: "{{cwd}}/a"}


def test_of_two_ids_the_longer_is_recognized_first() -> None:
    value = {"sessionId": "ses-abcde1", "messageId": "ses-abcde1-more", "t": "of ses-abcde1-more"}

    assert data(value)["t"] == "of {{message:1}}"


def test_an_id_of_two_kinds_is_of_the_first_of_them() -> None:
    value = [{"messageId": "id-of-both"}, {"sessionId": "id-of-both"}, {"retryId": "id-of-both"}]

    assert data({"v": value})["v"][0] == {"messageId": "{{session:2}}"}


def test_a_uuid_inside_a_longer_hexadecimal_word_is_none() -> None:
    assert data({"t": f"a{OTHER}"}) == {"t": f"a{OTHER}"}
    assert data({"t": f"x-{OTHER}/"}) == {"t": "x-{{uuid:1}}/"}
    assert data({"t": OTHER.upper()}) == {"t": "{{uuid:1}}"}


def test_ids_that_the_model_chose_stay_everywhere() -> None:
    block = {"type": "tool-call", "id": OTHER, "name": "t", "arguments": ""}
    delta = {"type": "tool-call-delta", "index": 0, "id": "call_random", "argumentsDelta": ""}
    events = [
        chunk({"type": "block-end", "index": 0, "block": block}),
        chunk(delta),
        chunk({"type": "finish", "reason": {"kind": "tool-calls"}}),
        event("tool/call", {"callId": OTHER}),
    ]

    done = run([log(events)], [tool("call_random", "pending")])

    assert done.logs[0].events[3]["data"]["callId"] == OTHER
    assert done.logs[0].events[0]["data"]["chunk"]["block"] == block
    assert done.transcript[0]["params"]["update"]["toolCallId"] == "call_random"


def test_literal_tokens_of_an_output_take_part_in_the_numbering() -> None:
    value = {"t": "{{session:9}} {{uuid:4}} {{message:7}} {{id:2}} {{session:9}}"}

    assert data(value)["t"] == "{{session:2}} {{uuid:1}} {{message:1}} {{id:1}} {{session:2}}"


def test_merged_identity_has_one_token_for_all_ids() -> None:
    value = {"a": [OTHER, "{{session:3}}"], "b": message(MESSAGE), "toolCallId": "call_1"}

    done = run([log([event("x", value)])], [said("text", CHILD)], rules=MERGED)

    assert done.logs[0].header["id"] == "{{sessionId}}"
    assert done.logs[0].events[0]["data"] == {
        "a": ["{{sessionId}}", "{{sessionId}}"],
        "b": message("{{sessionId}}"),
        "toolCallId": "call_1",
    }
    assert done.transcript[0]["params"]["sessionId"] == "{{sessionId}}"


# roots


def test_roots_become_tokens_whatever_stands_around_them() -> None:
    value = {"t": f"x{RUN}/cwd/a.py and {RUN}/spill-{RUN}/home{RUN}", RUN: 1}

    assert data(value) == {"t": "x{{cwd}}/a.py and {{spill}}-{{home}}{{run}}", RUN: 1}


def test_a_root_below_private_has_one_spelling() -> None:
    assert data({"t": f"/private{RUN}/cwd"}) == {"t": "{{cwd}}"}
    assert data({"t": "/private{{cwd}}/a"}) == {"t": "{{cwd}}/a"}


def test_the_header_has_tokens_and_says_so() -> None:
    header = run([log([], lineage="1", delegationDepth=0)]).logs[0].header

    assert header == {
        "type": "session",
        "version": 1,
        "id": "{{session:1}}",
        "createdAt": 0,
        "cwd": "{{cwd}}",
        "lineage": "1",
        "delegationDepth": 0,
        "tokens": 1,
    }
    assert list(header)[-1] == "tokens"


def test_created_at_is_the_sessions_place_in_the_harvest() -> None:
    logs = [log([]), log([], id=CHILD), log([], id=OTHER)]

    assert [one.header["createdAt"] for one in run(logs).logs] == [0, 1, 2]


# times


def test_times_and_durations_become_zero() -> None:
    value = {
        "time": 17,
        "timestamp": 1.5,
        "createdAt": "2026-12-01T03:44:53Z",
        "updatedAt": "2026-12-01 03:44",
        "startedAt": 1,
        "endedAt": 2,
        "durationMs": 12.25,
        "delayMs": 500,
        "n": {"time": True, "createdAt": "yesterday"},
        "l": [{"time": 3}],
    }

    assert data(value) == {
        "time": 0,
        "timestamp": 0,
        "createdAt": "0",
        "updatedAt": "0",
        "startedAt": 0,
        "endedAt": 0,
        "durationMs": 0,
        "delayMs": 500,
        "n": {"time": True, "createdAt": "yesterday"},
        "l": [{"time": 0}],
    }


@pytest.mark.parametrize("key", ["rawInput", "arguments", "inputSchema", "schema"])
def test_a_time_that_a_model_or_author_wrote_is_kept(key: str) -> None:
    assert data({key: {"time": 5, "createdAt": "2026-12-01T03:44:53Z"}}) == {
        key: {"time": 5, "createdAt": "2026-12-01T03:44:53Z"}
    }


def test_the_envelope_is_projected_at_the_top_only() -> None:
    done = run([log([event("x", {"seq": 4}, surfaceOp="append")])])

    assert done.logs[0].events == [{"type": "x", "data": {"seq": 4}, "surfaceOp": "append"}]


# model rows


def test_in_model_rows_only_roots_and_braces_change() -> None:
    text = f"{MESSAGE} {{{{cwd}}}} {{x}} {RUN}/cwd"
    events = [event("user/message", message(MESSAGE)), *answer(text)]

    done = run([log(events)])

    assert texts(done) == [f"{MESSAGE} {{{{lit}}}}cwd}}}} {{x}} {{{{cwd}}}}"]
    assert done.logs[0].model == frozenset({1, 2, 3, 4})


def test_a_root_cut_by_deltas_stands_whole_in_the_first_of_them() -> None:
    done = run([log(answer(f"in {RUN[:9]}", RUN[9:], "/c", "wd/a"))])

    assert texts(done) == ["in {{cwd}}", "", "", "/a"]


def test_what_the_agent_made_of_chunks_is_output() -> None:
    made = event("assistant/message", {"text": f"{{{{cwd}}}} {OTHER} {RUN}/cwd"})

    done = run([log([*answer("x"), made])])

    assert done.logs[0].events[4]["data"] == {"text": "{{cwd}} {{uuid:1}} {{cwd}}"}


def test_rows_of_overridden_calls_are_output() -> None:
    events = [*answer(OTHER), *answer(f"{OTHER} {{{{x}}}}", step=2)]

    done = run([log(events)], overridden={0: {1}})

    assert texts(done) == ["{{uuid:1}}", f"{OTHER} {{{{lit}}}}x}}}}"]
    assert done.logs[0].model == frozenset({4, 5, 6, 7})


def test_an_overridden_call_of_the_primary_counts_what_it_inherited() -> None:
    events = [*answer(OTHER), *answer(OTHER, step=2)]
    primary, child = log(events, seedLength=4), log(events, id=CHILD, seedLength=4)

    done = run([primary, child], overridden={0: {1}, 1: {1}})

    assert texts(done) == ["{{uuid:1}}", OTHER]
    assert [min(one.model) for one in done.logs] == [4, 0]


def test_what_a_child_inherited_is_normalized_as_in_its_parent() -> None:
    events = [*answer(OTHER), *answer(f"{{{{{OTHER}", step=2)]
    child = log([*events, *answer("own", step=3)], id=CHILD, parentSession=SESSION, seedLength=8)

    done = run([log(events), child], overridden={0: {1}})

    assert done.logs[1].events[:8] == done.logs[0].events
    assert done.logs[1].model == frozenset(range(4, 12))


def test_the_raw_output_of_a_compaction_is_a_model_row() -> None:
    raw = [{"type": "text", "text": f"{OTHER} {{{{a {RUN}/cwd"}]
    summary = {"rawOutput": raw, "text": OTHER, "llmStreamCall": True, "time": 5}

    done = run([log([event("compaction/summary", summary)])])

    assert done.logs[0].events[0]["data"] == {
        "rawOutput": [{"type": "text", "text": f"{OTHER} {{{{lit}}}}a {{{{cwd}}}}"}],
        "text": "{{uuid:1}}",
        "llmStreamCall": True,
        "time": 0,
    }
    assert reread(done) == done_without_lines(done)


def test_the_raw_output_of_an_overridden_compaction_is_output() -> None:
    summary = {"rawOutput": [{"type": "text", "text": OTHER}], "llmStreamCall": True}
    events = [event("compaction/summary", summary)]

    done = run([log(events)], overridden={0: {1}})

    assert done.logs[0].events[0]["data"]["rawOutput"][0]["text"] == "{{uuid:1}}"


def test_ids_in_a_raw_output_are_the_models() -> None:
    raw = [{"type": "tool-call", "id": OTHER, "name": "t", "arguments": ""}, "odd"]
    events = [event("compaction/summary", {"rawOutput": raw}), event("x", {"t": OTHER})]

    assert run([log(events)]).logs[0].events[1]["data"] == {"t": OTHER}


@pytest.mark.parametrize("value", [None, "text", {"rawOutput": "text"}, {"rawOutput": 5}])
def test_an_odd_summary_is_kept(value: Json) -> None:
    assert run([log([{"type": "compaction/summary", "data": value}])]).logs[0].events == [
        {"type": "compaction/summary", "data": value}
    ]


# literal logs


def fixture(events: list[dict[str, Any]], **header: Json) -> Normalized:
    return normalize_fixture([log(events, **header)], [], rules=RULES)


def test_in_a_literal_log_cwd_is_live_and_nothing_else() -> None:
    done = fixture(answer("{{cwd}}/a {{home}} {{{"), cwd="{{cwd}}")

    assert texts(done) == ["{{cwd}}/a {{lit}}home}} {{lit}}{"]
    assert done.logs[0].header["tokens"] == 1


def test_in_a_literal_log_a_placeholder_is_live() -> None:
    summary = {"rawOutput": [{"text": "{{fromRequest:a}} {{x}} {{cwd}}"}]}
    done = fixture([*answer("{{fromRequest:id (\\d+)}}!"), event("compaction/summary", summary)])

    assert texts(done) == ["{{fromRequest:id (\\d+)}}!"]
    assert done.logs[0].events[4]["data"]["rawOutput"] == [
        {"text": "{{fromRequest:a}} {{lit}}x}} {{cwd}}"}
    ]


def test_a_literal_log_from_elsewhere_equals_a_run_here() -> None:
    there = "/home/someone/project"
    events = [
        *answer(f"look into {there}/a"),
        event("assistant/message", {"text": f"look into {there}/a"}),
    ]
    literal = log([*events, event("tool/result", {"text": f"{there}/a.py\n"})], cwd=there)
    live = log([*events, event("tool/result", {"text": f"{RUN}/cwd/a.py\n"})])

    expected = normalize_fixture([literal], [], rules=RULES)

    assert foreign_roots([literal]) == [there]
    assert compare(expected, run([live], foreign=foreign_roots([literal]))) == []
    assert expected.logs[0].events[-1]["data"] == {"text": "{{cwd}}/a.py\n"}


def test_tokens_of_a_transcript_beside_literal_logs_are_those_that_the_logs_get() -> None:
    logs = [log([event("user/message", message(MESSAGE))]), log([], id=CHILD)]
    frames = [said("{{message:1}} {{uuid:4}} {{uuid:9}} {{uuid:4}}", "{{session:2}}")]

    done = normalize_fixture(logs, frames, rules=RULES)

    params = done.transcript[0]["params"]
    assert params["sessionId"] == done.logs[1].header["id"] == "{{session:2}}"
    text = params["update"]["content"]["text"]
    assert text == "{{message:1}} {{uuid:1}} {{uuid:2}} {{uuid:1}}"


def test_tokens_of_a_transcript_beside_normalized_logs_are_numbered_with_them() -> None:
    logs = [log([], id="{{session:5}}", tokens=1)]

    done = normalize_fixture(
        logs, [said("a", "{{session:5}}"), said("b", "{{session:1}}")], rules=RULES
    )

    names = [one["params"]["sessionId"] for one in done.transcript]
    assert names == ["{{session:1}}", "{{session:2}}"]


@pytest.mark.parametrize("cwd", ["{{cwd}}", "relative", "/", None])
def test_what_is_no_absolute_directory_is_not_foreign(cwd: Json) -> None:
    assert foreign_roots([log([], cwd=cwd)]) == []


def test_a_log_with_tokens_has_no_foreign_directory() -> None:
    assert foreign_roots([log([], cwd="/home/someone", tokens=1)]) == []


# headers


def test_prompt_and_tools_are_told_apart_from_the_log() -> None:
    header = {"system": f"You are in {RUN}/cwd.", "tools": [{"name": "t"}], "config": {"m": 1}}
    events = [event("request/header", {"header": header, "reason": "initial"})]

    done = run([log([]), log(events, id=CHILD)])

    assert done.headers == [
        HeaderPair(session=1, system="You are in {{cwd}}.", tools=[{"name": "t"}])
    ]
    assert done.logs[1].events[0]["data"] == {
        "header": {"system": "{{system}}", "tools": "{{tools}}", "config": {"m": 1}},
        "reason": "initial",
    }


@pytest.mark.parametrize(
    ("header", "pairs"),
    [
        ({"system": "s"}, [HeaderPair(session=0, system="s", tools=None)]),
        ({"tools": []}, [HeaderPair(session=0, system=None, tools=[])]),
        ({"system": "{{system}}", "tools": "{{tools}}"}, []),
        ({"system": "{{system}}"}, []),
        ({"config": 1}, []),
        ("text", []),
    ],
)
def test_a_header_is_told_if_there_is_text_in_it(header: Json, pairs: list[HeaderPair]) -> None:
    done = run([log([event("request/header", {"header": header})])])

    assert done.headers == pairs
    tokens = {"system": "{{system}}", "tools": "{{tools}}"}
    expected = (
        {k: tokens.get(k, v) for k, v in header.items()} if isinstance(header, dict) else header
    )
    assert done.logs[0].events[0]["data"]["header"] == expected


def test_other_events_may_have_a_header_of_their_own() -> None:
    assert data({"header": {"system": "s"}}) == {"header": {"system": "s"}}
    assert run([log([event("request/header", "text")])]).headers == []


def test_an_id_in_a_prompt_does_not_move_the_numbers_of_the_log() -> None:
    header = {"header": {"system": f"id {OTHER}"}}
    events = [event("request/header", header), event("x", {"t": MESSAGE})]

    done = run([log(events)])

    assert done.logs[0].events[1]["data"] == {"t": "{{uuid:1}}"}
    assert done.headers[0].system == "id {{uuid:2}}"


def test_a_time_in_a_tools_schema_is_part_of_the_schema() -> None:
    tools = [{"name": "t", "time": 5}]
    done = run([log([event("request/header", {"header": {"tools": tools}})])])

    assert done.headers[0].tools == tools


# transcript


def test_json_rpc_ids_become_numbers_the_clients_and_the_agents_apart() -> None:
    frames = [
        answered("a", v=1),
        {"jsonrpc": "2.0", "id": 17, "method": "fs/read", "params": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700}},
        answered(1, v=2),
        {"jsonrpc": "2.0", "id": "17", "method": "fs/read", "params": {}},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 17}},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": None}},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": []},
        {"type": "no frame", "id": "kept"},
    ]

    done = run([], frames).transcript

    assert [one.get("id") for one in done] == [1, 1, None, 2, 2, None, None, None, "kept"]
    assert done[5]["params"] == {"requestId": 1}
    assert frames[0]["id"] == "a"


def test_a_restarted_agent_has_new_ids() -> None:
    asks = {"id": 0, "method": "fs/read", "params": {}}

    done = run([], [asks, answered(0), {"snapshot": "restart"}, asks, answered(1)]).transcript

    assert [one.get("id") for one in done] == [1, 1, None, 2, 2]


def test_under_merged_identity_all_json_rpc_ids_are_counted_together() -> None:
    frames = [answered(0), {"id": 7, "method": "fs/read", "params": {}}, answered(1), answered(7)]

    done = run([], frames, rules=MERGED).transcript

    assert [one["id"] for one in done] == [1, 2, 3, 2]


def test_a_json_rpc_id_that_is_a_uuid_does_not_move_other_numbers() -> None:
    done = run([], [answered(OTHER), said(f"{MESSAGE}")])

    assert done.transcript[1]["params"]["update"]["content"]["text"] == "{{uuid:1}}"


def test_the_transcript_is_put_into_canonical_order_before_it_is_numbered() -> None:
    frames = [
        tool("1.1.1", "pending"),
        tool("1.1.2", "pending"),
        tool("1.1.2", "completed", text=OTHER),
        tool("1.1.1", "completed", text=MESSAGE),
    ]

    done = run([], frames).transcript

    assert [one["params"]["update"].get("text") for one in done] == [
        None,
        "{{uuid:1}}",
        None,
        "{{uuid:2}}",
    ]


def test_neighbouring_chunks_are_joined_where_the_suite_says_so() -> None:
    rules = Rules(coalesce_chunks=True)
    thought = frame("agent_thought_chunk", content={"type": "text", "text": "t"})
    image = frame("agent_message_chunk", content={"type": "image", "text": "i"})
    frames = [said("a"), said("b"), said("c", CHILD), thought, thought, image, image]

    done = run([], frames, rules=rules).transcript

    contents = [one["params"]["update"]["content"]["text"] for one in done]
    assert contents == ["ab", "c", "tt", "i", "i"]
    assert run([], frames).transcript[0]["params"]["update"]["content"]["text"] == "a"


@pytest.mark.parametrize(
    "other",
    [
        {"method": "session/update", "params": None},
        {"method": "session/update", "params": {"update": 5}},
        frame("agent_message_chunk", content="text"),
        frame("agent_message_chunk", content={"type": "text", "text": 5}),
        frame("usage_update", content={"type": "text", "text": "x"}),
    ],
)
def test_only_text_chunks_are_joined(other: dict[str, Any]) -> None:
    done = run([], [said("a"), other, other, said("b")], rules=Rules(coalesce_chunks=True))

    assert len(done.transcript) == 4


# rules


def test_a_rule_with_a_path_replaces_what_stands_there() -> None:
    rule = becomes("{{pid}}", path="data.list[*].pid")

    done = data({"list": [{"pid": 17}, {"pid": OTHER, "x": MESSAGE}]}, Rules(rules=(rule,)))

    assert done == {"list": [{"pid": "{{pid}}"}, {"pid": "{{pid}}", "x": "{{uuid:1}}"}]}


def test_a_rule_with_a_pattern_replaces_what_matches() -> None:
    rule = becomes("{{port}}", pattern=r"port (\d+)")

    assert data({"t": "port 8080 in 8080"}, Rules(rules=(rule,))) == {"t": "port {{port}} in 8080"}


def test_a_pattern_sees_tokens_for_roots_and_takes_ids_whole_or_not_at_all() -> None:
    rules = Rules(
        rules=(
            becomes("{{log}}", pattern=r"\{\{cwd\}\}/log\.\d+"),
            becomes("{{n}}", pattern=r"\d+"),
            becomes("{{by}}", pattern=r"by \S+"),
        )
    )

    done = data({"t": f"{RUN}/cwd/log.17 {OTHER} 5 by {MESSAGE} {CHILD}"}, rules)

    assert done == {"t": "{{log}} {{uuid:1}} {{n}} {{by}} {{uuid:2}}"}


def test_rules_do_not_touch_model_rows() -> None:
    rule = becomes("{{n}}", pattern=r"\d+")

    assert texts(run([log(answer("12"))], rules=Rules(rules=(rule,)))) == ["12"]


def test_rules_hold_for_frames_too() -> None:
    rule = becomes("{{x}}", path="params.update.content.text")

    done = run([], [said("random")], rules=Rules(rules=(rule,)))

    assert done.transcript[0]["params"]["update"]["content"]["text"] == "{{x}}"


# laws


def test_a_fixture_is_its_own_normal_form() -> None:
    header = {"header": {"system": "s", "tools": []}}
    events = [
        event("request/header", header),
        event("user/message", message(MESSAGE, f"{RUN}/cwd {{{{x}}}} {OTHER}")),
        *answer(f"{{{{{RUN[:7]}", f"{RUN[7:]}/spill {{{{lit}}}}"),
        event("tool/result", {"message": message(OTHER), "durationMs": 5}),
    ]
    done = run([log(events)], [said(OTHER), tool("random-id", "pending"), answered(3)])

    assert reread(done) == done_without_lines(done)


def done_without_lines(done: Normalized) -> Normalized:
    """Return a run as it is read again: with the lines of its file, without its headers."""
    logs = [replace(one, lines=list(range(2, len(one.events) + 2))) for one in done.logs]
    return Normalized(logs=logs, transcript=done.transcript)


def test_nothing_of_the_input_is_changed_in_place() -> None:
    events = [*answer(f"{RUN}/cwd"), event("x", {"t": [OTHER]})]
    live, frames = log(events), [said(OTHER), answered(7)]
    before = copy.deepcopy((live, frames))

    run([live], frames)

    assert (live, frames) == before


def test_what_is_nested_too_deeply_is_refused_in_words() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(HarnessError, match="nested"):
        run([], [{"method": "m", "params": value}])
    with pytest.raises(HarnessError, match="nested"):
        normalize_fixture([], [{"method": "m", "params": value}], rules=RULES)


WORDS = st.sampled_from(
    [RUN, f"{RUN}/cwd", f"{RUN}/spill/1", "{{", "{", "}}", "{{cwd}}", "{{lit}}", "a", OTHER, "/cwd"]
)
TEXT = st.lists(WORDS, max_size=6).map("".join)
ELSEWHERE = Roots(
    cwd="/q/cwd", home="/q/home", tmp="/q/tmp", sessions="/q/s", spill="/q/p", run="/q"
)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places})
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


@given(text=TEXT, places=st.lists(st.integers(0, 60), max_size=4))
def test_recorded_here_and_served_elsewhere_a_fixture_stays_as_it_is(
    text: str, places: list[int]
) -> None:
    recorded = run([log(answer(*cut(text, places)))])
    committed = log_bytes(recorded.logs[0], layout="plain")
    script = read_session_log(committed)

    served = [one["data"]["chunk"] for one in script.events]
    served = serve_chunks(served, ELSEWHERE)
    again = log([chunk(one) for one in served], cwd=ELSEWHERE.cwd)
    replayed = normalize_run([again], [], roots=ELSEWHERE, rules=RULES)

    assert log_bytes(replayed.logs[0], layout="plain") == committed
    assert compare(recorded, replayed) == []
    home = serve_chunks([one["data"]["chunk"] for one in script.events], ROOTS)
    assert "".join(one["text"] for one in home if one["type"] == "text-delta") == text


@given(
    values=st.lists(
        st.recursive(
            TEXT | st.integers() | st.booleans(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["id", "role", "sessionId", "time", "text", "toolCallId"]),
                    inner,
                )
            ),
            max_leaves=8,
        ),
        max_size=4,
    ),
    merged=st.booleans(),
)
def test_normalizing_twice_is_normalizing_once(values: list[Json], *, merged: bool) -> None:
    rules = Rules(
        identity="merged" if merged else "numbered",
        rules=(becomes("{{n}}", pattern=r"a+"), becomes("{{r}}", path="data.v.role")),
    )
    events = [event("x", {"v": value}) for value in values]
    frames = [frame("x", v=value) for value in values]
    once = normalize_run([log(events)], frames, roots=ROOTS, rules=rules)

    twice = reread(once, rules)

    assert [one.events for one in twice.logs] == [one.events for one in once.logs]
    assert [one.header for one in twice.logs] == [one.header for one in once.logs]
    assert twice.transcript == once.transcript
