"""Whatever an agent writes as JSON is normalized, ordered and compared without falling over."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from judging import RULES, SESSION, log, run

from llm_replay.session_log import read_session_log
from snapshot_harness.causes import diff, render
from snapshot_harness.compare import compare
from snapshot_harness.fixtures import log_bytes, transcript_bytes
from snapshot_harness.guards_rows import row_problems
from snapshot_harness.normalize import normalize_fixture
from snapshot_harness.order import canonical_order
from snapshot_harness.rules import Rules

PATH = Path("session.jsonl")
KEYS = [
    *("id", "method", "params", "result", "error", "sessionId", "update", "toolCallId", "_meta"),
    *("sessionUpdate", "content", "text", "type", "toolCall", "parentToolCallId", "requestId"),
    *("stopReason", "role", "messageId", "time", "createdAt", "snapshot", "rawInput", "jsonrpc"),
    *("turn", "step", "chunk", "header", "system", "tools", "rawOutput", "callId", "block"),
    *("sourceEventSeqs", "messageSeqs", "surfaceOp", "start", "end", "index", "llmStreamCall"),
    *("argumentsDelta", "reason", "kind", "error", "code", "usage", "call", "purpose", "data"),
]
WORDS = [
    *("", "a", SESSION, "{{session:3}}", "{{uuid:1}}", "{{", "1.1.1", "1/1.1.1:1.1.1", "text"),
    *("session/update", "$/cancel_request", "agent_message_chunk", "tool-call", "finish"),
    *("text-delta", "tool-call-delta", "block-end", "2026-12-01T00:00:00Z", "\ud83d", "{{cwd}}"),
]
TYPES = [
    *("assistant/chunk", "assistant/message", "request/header", "compaction/summary", "llm/call"),
    *("tool/result", "approval/asked", "turn/end", "compaction/end", "llm/retry", "x"),
]
LEAVES = st.none() | st.booleans() | st.integers(-1, 3) | st.floats(0, 2) | st.sampled_from(WORDS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
FRAMES = st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5), max_size=5)
PARAMS = st.fixed_dictionaries({"params": st.dictionaries(st.sampled_from(KEYS), VALUES)})
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | VALUES, "data": VALUES},
        optional={"sourceEventSeqs": VALUES, "surfaceOp": VALUES, "ignorable": VALUES},
    ),
    max_size=5,
)


@settings(max_examples=200)
@given(left=FRAMES, right=FRAMES | st.lists(PARAMS, max_size=5), coalesced=st.booleans())
def test_any_frames(
    left: list[dict[str, Any]], right: list[dict[str, Any]], *, coalesced: bool
) -> None:
    rules = Rules(coalesce_chunks=coalesced)
    done = [run([], frames, rules=rules) for frames in (left, right)]

    causes = compare(*done)

    assert render(causes) or not causes
    assert diff(causes) or not causes
    for side, frames in zip(done, (left, right), strict=True):
        assert canonical_order(canonical_order(frames)) == canonical_order(frames)
        again = normalize_fixture([], side.transcript, rules=rules)
        assert transcript_bytes(again.transcript) == transcript_bytes(side.transcript)
        assert compare(side, again) == []


@settings(max_examples=200)
@given(left=EVENTS, right=EVENTS)
def test_any_events(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    logs = [log(events) for events in (left, right)]
    done = [run([one]) for one in logs]

    causes = compare(*done)

    assert render(causes) or not causes
    for one, side in zip(logs, done, strict=True):
        facts = {"primary": True, "malformed": False, "authored": False}
        assert all(problem.line for problem in row_problems(PATH, one, overridden=(), **facts))
        data = log_bytes(side.logs[0], layout="plain")
        again = normalize_fixture([read_session_log(data)], [], rules=RULES)
        assert log_bytes(again.logs[0], layout="plain") == data
        assert compare(side, again) == []
