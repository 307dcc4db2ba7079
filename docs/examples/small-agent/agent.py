"""A small agent: it answers questions about the text files in its working directory."""

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import model

SYSTEM = "You answer questions about the files in one directory. Be brief."
TOOLS = [
    {
        "name": "read_file",
        "description": "Return the text of a file.",
        "schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    }
]


def send(frame: dict[str, Any]) -> None:
    """Write one JSON-RPC frame to stdout, which carries nothing else."""
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


class Log:
    """A session log: a header, then one event a line."""

    def __init__(self, session: str, cwd: str) -> None:
        root = Path(os.environ.get("DSH_SNAPSHOT_SESSIONS_ROOT", "sessions"))
        folder = root / session
        folder.mkdir(parents=True)
        self.file = (folder / "session.jsonl").open("w")
        self.events = 0
        header = {"type": "session", "version": 1, "id": session, "cwd": cwd}
        self.append({**header, "createdAt": int(time.time() * 1000)})

    def write(self, event: str, **data: object) -> None:
        """Append an event."""
        now = int(time.time() * 1000)
        self.append({"type": event, "seq": self.events, "time": now, "data": data})
        self.events += 1

    def append(self, record: dict[str, Any]) -> None:
        """Append a line, and see that it is written."""
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()


class Session:
    """One conversation."""

    def __init__(self, cwd: str) -> None:
        self.id = str(uuid.uuid4())
        self.cwd = Path(cwd)
        self.log = Log(self.id, cwd)
        self.messages: list[dict[str, Any]] = []
        self.turn = 0

    def prompt(self, text: str) -> None:
        """Run one turn: ask the model until it wants no more tools."""
        self.turn += 1
        self.log.write("turn/start", turn=self.turn)
        self.log.write("user/message", turn=self.turn, text=text)
        self.messages.append({"role": "user", "content": text})
        if self.turn == 1:
            header = {"system": SYSTEM, "tools": TOOLS}
            self.log.write("request/header", header=header, reason="initial")
        step = 1
        while calls := self.ask(step):
            for place, call in enumerate(calls, 1):
                self.read_file(step, place, call)
            step += 1
        self.log.write("turn/end", turn=self.turn, reason={"kind": "completed"})

    def ask(self, step: int) -> list[dict[str, Any]]:
        """Stream one answer of the model; return the tool calls in it."""
        blocks = []
        for chunk in model.stream(SYSTEM, TOOLS, self.messages):
            self.log.write("assistant/chunk", turn=self.turn, step=step, chunk=chunk)
            if chunk["type"] == "text-delta":
                content = {"type": "text", "text": chunk["text"]}
                self.update(sessionUpdate="agent_message_chunk", content=content)
            elif chunk["type"] == "block-end":
                blocks.append(chunk["block"])
        message = {"role": "assistant", "content": blocks}
        self.log.write("assistant/message", turn=self.turn, step=step, message=message)
        self.messages.append(message)
        return [block for block in blocks if block["type"] == "tool-call"]

    def read_file(self, step: int, place: int, call: dict[str, Any]) -> None:
        """Run the only tool, and let the client watch."""
        path = json.loads(call["arguments"])["path"]
        shown = {"toolCallId": f"{self.turn}.{step}.{place}", "title": f"Read {path}"}
        where = {"turn": self.turn, "step": step, "callId": call["id"]}
        self.log.write("tool/call", **where, name=call["name"], arguments=call["arguments"])
        self.update(sessionUpdate="tool_call", **shown, kind="read", status="in_progress")
        try:
            text, status = (self.cwd / path).read_text(), "completed"
        except OSError as error:
            text, status = f"Error: {error.strerror}", "failed"
        self.log.write("tool/result", **where, text=text)
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        self.update(sessionUpdate="tool_call_update", **shown, status=status, content=content)
        self.messages.append({"role": "tool", "id": call["id"], "content": text})

    def update(self, **update: object) -> None:
        """Tell the client what happens."""
        send({"method": "session/update", "params": {"sessionId": self.id, "update": update}})


sessions: dict[str, Session] = {}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of one request of the client."""
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
    if method == "session/new":
        session = Session(params["cwd"])
        sessions[session.id] = session
        return {"sessionId": session.id}
    if method == "session/prompt":
        text = "".join(block.get("text", "") for block in params["prompt"])
        sessions[params["sessionId"]].prompt(text)
        return {"stopReason": "end_turn"}
    raise LookupError(method)


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue  # a notification wants no answer
    try:
        send({"id": request["id"], "result": answer(request["method"], request["params"])})
    except LookupError as unknown:
        error = {"code": -32601, "message": f"Method not found: {unknown}"}
        send({"id": request["id"], "error": error})
