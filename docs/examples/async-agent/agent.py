"""A small asynchronous agent: it answers in text, can be cancelled, and survives failures."""

import asyncio
import json
import os
import sys
import time
import uuid
from contextlib import aclosing
from pathlib import Path
from typing import Any

from models import Models, Request

from llm_replay import ReplayError

models = Models()
if os.environ.get("DSH_SNAPSHOT") == "replay":
    from llm_replay import ReplayConfig, install_llm_replay

    install_llm_replay(models, ReplayConfig())
else:
    from provider import Endpoint

    models.register_provider("endpoint", Endpoint())


def send(frame: dict[str, Any]) -> None:
    """Write one frame to stdout, which carries nothing else."""
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


class Session:
    """One conversation and its log."""

    def __init__(self, cwd: str) -> None:
        self.id = str(uuid.uuid4())
        self.messages: list[dict[str, Any]] = []
        self.turn = self.events = self.calls = 0
        self.task: asyncio.Task[str] | None = None
        root = Path(os.environ.get("DSH_SNAPSHOT_SESSIONS_ROOT", "sessions"))
        self.lineage, folder = claim(root)
        self.file = (folder / "session.jsonl").open("x")
        header = {"type": "session", "version": 1, "id": self.id, "cwd": cwd}
        self.append({**header, "createdAt": now(), "lineage": self.lineage})

    def log(self, event: str, **data: object) -> None:
        """Append an event."""
        more = {"ignorable": True} if event == "llm/call" else {}
        self.append({"type": event, "seq": self.events, "time": now(), "data": data, **more})
        self.events += 1

    def append(self, record: dict[str, Any]) -> None:
        """Append a line, and see that it is written."""
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    async def prompt(self, text: str) -> str:
        """Run one turn; return its stop reason."""
        self.turn += 1
        self.log("turn/start", turn=self.turn)
        self.log("user/message", turn=self.turn, text=text)
        self.messages.append({"role": "user", "content": text})
        try:
            await self.ask()
        except asyncio.CancelledError:
            self.log("turn/end", turn=self.turn, reason={"kind": "aborted"})
            return "cancelled"
        except ReplayError:
            raise  # the recording does not fit: nothing to be polite about
        except Exception as failure:  # noqa: BLE001  whatever the provider raises
            reason = {"kind": "error", "message": str(failure)}
            self.log("turn/end", turn=self.turn, reason=reason)
            self.say(f"The model failed: {failure}")
            return "end_turn"
        self.log("turn/end", turn=self.turn, reason={"kind": "completed"})
        return "end_turn"

    async def ask(self) -> None:
        """Stream one answer, and log it as it comes."""
        place = {"turn": self.turn, "step": 1}
        self.calls += 1
        self.log("llm/call", **place, call=self.calls, purpose="turn")
        request = Request(self.messages, self.id, self.lineage)
        said = ""
        try:
            async with aclosing(models.stream(request)) as chunks:
                async for chunk in chunks:
                    self.log("assistant/chunk", **place, chunk=chunk)
                    if chunk["type"] == "text-delta":
                        said += chunk["text"]
                        self.say(chunk["text"])
        except asyncio.CancelledError:
            self.log("assistant/message", **place, text=said, interrupted=True)
            raise
        self.log("assistant/message", **place, text=said)
        self.messages.append({"role": "assistant", "content": [{"type": "text", "text": said}]})

    def say(self, text: str) -> None:
        """Show the client a piece of text."""
        content = {"type": "text", "text": text}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send({"method": "session/update", "params": {"sessionId": self.id, "update": update}})


def now() -> int:
    """Return the time in milliseconds."""
    return int(time.time() * 1000)


def claim(root: Path) -> tuple[str, Path]:
    """Return the next free number below `root`; making its directory claims it."""
    root.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        try:
            (root / str(number)).mkdir()
        except FileExistsError:
            number += 1
        else:
            return str(number), root / str(number)


sessions: dict[str, Session] = {}


async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of one request."""
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
    if method == "session/new":
        session = Session(params["cwd"])
        sessions[session.id] = session
        return {"sessionId": session.id}
    if method == "session/prompt":
        session = sessions[params["sessionId"]]
        text = "".join(block.get("text", "") for block in params["prompt"])
        session.task = asyncio.create_task(session.prompt(text))
        return {"stopReason": await session.task}
    raise LookupError(f"Method not found: {method}")


async def handle(frame: dict[str, Any]) -> None:
    """Take in one frame of the client."""
    if frame["method"] == "session/cancel":
        task = sessions[frame["params"]["sessionId"]].task
        if task is not None:
            task.cancel()
    if "id" not in frame:
        return
    try:
        send({"id": frame["id"], "result": await answer(frame["method"], frame["params"])})
    except LookupError as error:
        send({"id": frame["id"], "error": {"code": -32601, "message": str(error)}})
    except ReplayError as error:
        send({"id": frame["id"], "error": {"code": -32603, "message": str(error)}})


async def main() -> None:
    """Serve one client until its stdin ends."""
    async with asyncio.TaskGroup() as handling:
        while line := await asyncio.to_thread(sys.stdin.readline):
            handling.create_task(handle(json.loads(line)))


asyncio.run(main())
