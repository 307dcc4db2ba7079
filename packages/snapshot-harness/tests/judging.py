"""Small runs to judge: logs, transcripts, roots."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llm_replay.session_log import SessionLog, read_session_log
from llm_replay.tokens import Roots
from snapshot_harness.fixtures import log_bytes
from snapshot_harness.json_value import Json
from snapshot_harness.normalize import Normalized, normalize_fixture, normalize_run
from snapshot_harness.rules import Rules

RUN = "/tmp/acpsnap-0123456789ab"
ROOTS = Roots(
    cwd=f"{RUN}/cwd",
    home=f"{RUN}/home",
    tmp=f"{RUN}/tmp",
    sessions=f"{RUN}/sessions",
    spill=f"{RUN}/spill",
    run=RUN,
)
SESSION = "0a1b2c3d-0000-4000-8000-00000000000a"
MESSAGE = "0a1b2c3d-0000-4000-8000-0000000000b1"
RULES = Rules()
MERGED = Rules(identity="merged")


def log(events: Sequence[Mapping[str, Any]], **header: Json) -> SessionLog:
    """Return a live log of `events`, which need no envelope."""
    raw = {"type": "session", "version": 1, "id": SESSION, "createdAt": 17, "cwd": f"{RUN}/cwd"}
    lines = [raw | header]
    for seq, event in enumerate(events):
        lines.append({"type": event["type"], "seq": seq, "time": 1000 + seq} | dict(event))
    return read_session_log(b"".join(dump(line) for line in lines), name="session.jsonl")


def dump(value: Json) -> bytes:
    """Return one line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def event(kind: str, data: Json = None, **rest: Json) -> dict[str, Any]:
    """Return an event without its envelope."""
    return {"type": kind, "data": {} if data is None else data, **rest}


def chunk(chunk: Json, turn: int = 1, step: int = 1) -> dict[str, Any]:
    """Return the event of one chunk."""
    return event("assistant/chunk", {"turn": turn, "step": step, "chunk": chunk})


def answer(text: str, *more: str, turn: int = 1, step: int = 1) -> list[dict[str, Any]]:
    """Return the chunk events of a call that says the texts, one delta each."""
    whole = "".join([text, *more])
    chunks: list[Json] = [{"type": "block-start", "index": 0, "blockType": "text"}]
    chunks += [{"type": "text-delta", "index": 0, "text": part} for part in (text, *more)]
    chunks.append({"type": "block-end", "index": 0, "block": {"type": "text", "text": whole}})
    chunks.append({"type": "finish", "reason": {"kind": "stop"}})
    return [chunk(one, turn, step) for one in chunks]


def frame(update: str, session: str = SESSION, **fields: Json) -> dict[str, Any]:
    """Return a `session/update`."""
    params = {"sessionId": session, "update": {"sessionUpdate": update, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def said(text: str, session: str = SESSION) -> dict[str, Any]:
    """Return an `agent_message_chunk`."""
    return frame("agent_message_chunk", session, content={"type": "text", "text": text})


def tool(call: str, status: str, session: str = SESSION, **fields: Json) -> dict[str, Any]:
    """Return a tool call's update; `pending` announces it."""
    kind = "tool_call" if status == "pending" else "tool_call_update"
    return frame(kind, session, toolCallId=call, status=status, **fields)


def answered(number: Json, **result: Json) -> dict[str, Any]:
    """Return the agent's answer to a request of the client."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def run(
    logs: Sequence[SessionLog] = (),
    transcript: Sequence[dict[str, Any]] = (),
    rules: Rules = RULES,
    **more: Json,
) -> Normalized:
    """Return a live run, normalized."""
    return normalize_run(logs, transcript, roots=ROOTS, rules=rules, **more)


def reread(done: Normalized, rules: Rules = RULES, **more: Json) -> Normalized:
    """Return what normalizing makes of a run that was written and read."""
    logs = [read_session_log(log_bytes(one, layout="plain"), name=one.name) for one in done.logs]
    return normalize_fixture(logs, done.transcript, rules=rules, **more)
