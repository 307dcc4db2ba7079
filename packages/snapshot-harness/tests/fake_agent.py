"""An agent with modes, for the harness's tests: words in $FAKE say what it does wrong.

It keeps the contract as far as it is not told otherwise. The model: each call of
the fixture in replay; in record, an answer made of the prompt.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_replay.config import ReplayConfig, with_environment
from llm_replay.script import SessionScript, load_session_scripts
from llm_replay.tokens import Roots, serve_chunks
from llm_replay.verdict import VerdictWriter

WORDS = frozenset(os.environ.get("FAKE", "").split())
LIVE = os.environ.get("DSH_SNAPSHOT") == "record"
TOOLS = [{"name": "run", "description": "Runs a command."}]


class Log:
    """The session's log, one flushed line per event."""

    def __init__(self, session: str, lineage: str) -> None:
        root = Path(os.environ["DSH_SNAPSHOT_SESSIONS_ROOT"]) / "project" / session
        if "no-log" in WORDS:
            root = Path(os.environ["TMPDIR"])
        root.mkdir(parents=True, exist_ok=True)
        name = "log.jsonl" if "other-log-name" in WORDS else "session.jsonl"
        self._file = (root / name).open("wb", buffering=0)
        self._seq = 0
        header = {"type": "session", "version": 1, "id": session, "createdAt": now()}
        header |= {"cwd": str(Path.cwd()), "delegationDepth": 0}
        if "no-lineage" not in WORDS:
            header["lineage"] = lineage
        self._line(header)

    def add(self, kind: str, data: object, **rest: object) -> None:
        seq = self._seq + ("gap" in WORDS)
        self._line({"type": kind, "seq": seq, "time": now(), "data": data, **rest})
        self._seq += 1

    def cut(self) -> None:
        self._file.write(b'{"type":"turn/e')

    def _line(self, value: object) -> None:
        self._file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")


class Model:
    """Answers calls from the fixture, or, in record, from the prompt."""

    def __init__(self) -> None:
        self.scripts: list[SessionScript] = []
        self.served: dict[int, int] = {}
        self.verdict: VerdictWriter | None = None
        if LIVE:
            return
        config = with_environment(ReplayConfig(), os.environ)
        self.scripts = load_session_scripts(config)
        self.roots = Roots.from_environment(os.environ, str(Path.cwd()))
        if "no-verdict" not in WORDS:
            self.verdict = VerdictWriter(Path(os.environ["DSH_SNAPSHOT_VERDICT_DIR"]))
            self.verdict.installed(
                [(script.file.rpartition("/")[2], len(script.entries)) for script in self.scripts]
            )

    def call(self, script: int, prompt: str) -> Iterator[dict[str, Any]]:
        if LIVE:
            yield from live_answer(prompt)
            return
        number = self.served[script] = self.served.get(script, 0) + 1
        entries = self.scripts[script].entries if script < len(self.scripts) else []
        if number > len(entries):
            self._tell("fault", "exhausted", f"call {number} of {len(entries)}", script=script)
            raise EOFError("the script is exhausted")
        self._tell("bound", script, "session", None) if number == 1 else None
        self._tell("call", script, number)
        entry = entries[number - 1]
        chunks = entry.get("chunks") or []
        if self.scripts[script].tokens:
            chunks = serve_chunks(chunks, self.roots)
        yield from chunks
        if entry["kind"] == "hang":
            self._tell("hanging", script, number)
            CANCELLED.wait()
            raise InterruptedError
        self._tell("served", script, number)

    def _tell(self, fact: str, *arguments: object, **rest: object) -> None:
        if self.verdict is not None:
            getattr(self.verdict, fact)(*arguments, **rest)


def live_answer(prompt: str) -> Iterator[dict[str, Any]]:
    """What the "live" model says: it echoes, in pieces, and may ask for a tool."""
    text = f"You said {prompt}, in {Path.cwd()}, at {{{{any}}}} {os.environ.get('FAKE_KEY', '')}."
    yield {"type": "block-start", "index": 0, "blockType": "text"}
    for at in range(0, len(text), 7):
        yield {"type": "text-delta", "index": 0, "text": text[at : at + 7]}
        if "endless" in WORDS:
            CANCELLED.wait()
            raise InterruptedError
    yield {"type": "block-end", "index": 0, "block": {"type": "text", "text": text}}
    yield {"type": "usage", "usage": {"inputTokens": 3, "outputTokens": 4}}
    yield {"type": "finish", "reason": {"kind": "stop"}}


CANCELLED = threading.Event()


class Agent:
    """The protocol's side."""

    def __init__(self) -> None:
        self.model = Model()
        self.logs: dict[str, Log] = {}
        self.turns: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.responses: dict[object, dict[str, Any]] = {}
        self.answered = threading.Condition()
        self.asked = 0
        self.lock = threading.Lock()

    def send(self, frame: dict[str, Any]) -> None:
        with self.lock:
            sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
            sys.stdout.buffer.flush()

    def update(self, session: str, update: dict[str, Any]) -> None:
        params = {"sessionId": session, "update": update}
        self.send({"method": "session/update", "params": params})

    def ask(self, method: str, params: object) -> dict[str, Any]:
        self.asked += 1
        name = f"q{self.asked}" if "string-ids" in WORDS else self.asked
        self.send({"id": name, "method": method, "params": params})
        with self.answered:
            self.answered.wait_for(lambda: name in self.responses)
        return self.responses[name]

    def take(self, frame: dict[str, Any]) -> None:
        method = frame.get("method")
        if method is None:
            with self.answered:
                self.responses[frame["id"]] = frame
                self.answered.notify_all()
        elif method == "session/cancel":
            CANCELLED.set()
        elif method == "session/prompt":
            CANCELLED.clear()
            self.turn = threading.Thread(target=self.prompt, args=(frame,), daemon=True)
            self.turn.start()
        elif "id" in frame:
            self.answer(frame, method)

    def answer(self, frame: dict[str, Any], method: str) -> None:
        params = frame.get("params") or {}
        result: dict[str, Any]
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            result["agentInfo"] = {"name": "fake", "version": "7"}
        elif method == "session/new":
            result = {"sessionId": self.new_session(params)}
        elif method == "session/load":
            result = {}
        elif method == "fake/ids":
            result = {"given": params}
        else:
            error = {"code": -32601, "message": f"Method not found: {method}"}
            self.send({"id": frame["id"], "error": error})
            return
        self.send({"id": frame["id"], "result": result})

    def new_session(self, params: dict[str, Any]) -> str:
        session = str(uuid.uuid4())
        self.logs[session] = Log(session, str(len(self.logs) + 1))
        self.turns[session] = self.calls[session] = 0
        if "wrong-cwd" in WORDS:
            params["cwd"] = "/"
        return session

    def prompt(self, frame: dict[str, Any]) -> None:
        session = frame["params"]["sessionId"]
        text = "".join(block.get("text", "") for block in frame["params"]["prompt"])
        try:
            reason = Turn(self, session, text).run()
        except EOFError:
            reason = "end_turn"
        if "refuse" in WORDS:
            sys.stderr.write("I refuse\n")
            reason = None
        if reason is None:
            self.send({"id": frame["id"], "error": {"code": -32603, "message": "failed"}})
            return
        self.send({"id": frame["id"], "result": {"stopReason": reason}})
        if "late-update" in WORDS:
            content = {"type": "text", "text": "too late"}
            self.update(session, {"sessionUpdate": "agent_message_chunk", "content": content})


class Turn:
    """One prompt to its stop reason."""

    def __init__(self, agent: Agent, session: str, text: str) -> None:
        self.agent, self.session, self.text = agent, session, text
        self.log = agent.logs[session]
        agent.turns[session] += 1
        self.turn = agent.turns[session]
        self.step = 0

    def run(self) -> str | None:
        self.log.add("turn/start", {"turn": self.turn})
        content = [{"type": "text", "text": self.text}]
        message = {"id": str(uuid.uuid4()), "role": "user", "content": content}
        self.log.add("user/message", message)
        misbehave(self.agent, self.session)
        try:
            while self.one_step():
                pass
        except InterruptedError:
            reason = {"kind": "aborted", "reason": {"kind": "user"}}
            self.log.add("turn/end", {"turn": self.turn, "reason": reason})
            return "cancelled"
        except EOFError:
            if "swallow" not in WORDS:
                return None
        self.log.add("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})
        return "end_turn"

    def one_step(self) -> bool:
        self.step += 1
        at = {"turn": self.turn, "step": self.step}
        self.log.add("step/start", at)
        prompt = "You are another fake." if "other-prompt" in WORDS else "You are a fake."
        header = {"system": prompt, "tools": TOOLS}
        if self.turn == self.step == 1:
            self.log.add("request/header", {"header": header, "reason": "initial"})
        self.agent.calls[self.session] += 1
        call = {**at, "call": self.agent.calls[self.session], "purpose": "turn"}
        if "no-llm-call" not in WORDS:
            self.log.add("llm/call", call, ignorable=True)
        blocks = list(self.stream(at))
        if "twice" in WORDS:
            list(self.stream(at))
        message = {"id": str(uuid.uuid4()), "role": "assistant", "content": blocks}
        self.log.add("assistant/message", {**at, "message": message})
        tools = [block for block in blocks if block["type"] == "tool-call"]
        for k, block in enumerate(tools, 1):
            self.run_tool(at, k, block)
        self.log.add("step/end", at)
        return bool(tools)

    def stream(self, at: dict[str, int]) -> Iterator[dict[str, Any]]:
        script = list(self.agent.logs).index(self.session)
        for chunk in self.agent.model.call(script, self.text):
            logged = chunk
            alters = "alter" in WORDS or ("alter-replay" in WORDS and not LIVE)
            if alters and chunk["type"] == "text-delta":
                logged = {**chunk, "text": chunk["text"].upper()}
            if "other-usage" in WORDS and chunk["type"] == "usage":
                tokens = chunk["usage"]["inputTokens"] + 1
                logged = {**chunk, "usage": {**chunk["usage"], "inputTokens": tokens}}
            self.log.add("assistant/chunk", {**at, "chunk": logged})
            if chunk["type"] == "text-delta":
                content = {"type": "text", "text": chunk["text"]}
                update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk"}
                update["content"] = content
                if "moving" in WORDS:
                    update["moving"] = time.perf_counter()
                self.agent.update(self.session, update)
            if chunk["type"] == "block-end":
                yield chunk["block"]

    def run_tool(self, at: dict[str, int], k: int, block: dict[str, Any]) -> None:
        name = f"{self.turn}.{self.step}.{k}"
        command = json.loads(block["arguments"]).get("command", "")
        self.log.add("tool/call", {**at, "callId": block["id"], **block})
        shown = {"toolCallId": name, "title": command, "status": "pending"}
        self.agent.update(self.session, {"sessionUpdate": "tool_call", **shown})
        output = tool_output(self.agent, self.session, command, name)
        done = {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": "completed"}
        text = {"type": "text", "text": output}
        self.agent.update(self.session, {**done, "content": [{"type": "content", "content": text}]})
        result = {"type": "tool-result", "toolCallId": block["id"], "content": [text]}
        message = {"id": str(uuid.uuid4()), "role": "user", "content": [result]}
        self.log.add("tool/result", {**at, "message": message})


def tool_output(agent: Agent, session: str, command: str, name: str) -> str:
    """A tool that asks the client, or one that runs a shell."""
    word, _, rest = command.partition(" ")
    if word == "permit":
        options = [{"optionId": f"o-{kind}", "kind": kind} for kind in rest.split()]
        asking = {"sessionId": session, "toolCall": {"toolCallId": name}, "options": options}
        return json.dumps(agent.ask("session/request_permission", asking)["result"])
    if word == "client":
        method, _, params = rest.partition(" ")
        filled = params.replace("$CWD", str(Path.cwd()))
        asked = {"sessionId": session, "_meta": {"toolCallId": name}, **json.loads(filled)}
        response = agent.ask(method, asked)
        return json.dumps(response.get("result", response.get("error")))
    ran = subprocess.run(  # noqa: S602  what the script says
        command, shell=True, capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr


def now() -> int:
    return int(time.time() * 1000)


def misbehave(agent: Agent, session: str) -> None:  # noqa: C901, PLR0912  a list of faults
    """Do what $FAKE says, in the middle of a turn."""
    raw = sys.stdout.buffer
    if "noise" in WORDS:
        raw.write(b"noise\n")
    if "number" in WORDS:
        raw.write(b"17\n")
    if "half-line" in WORDS:
        raw.write(b'{"jsonrpc":')
    raw.flush()
    if "bad-verdict" in WORDS:
        Path(os.environ["DSH_SNAPSHOT_VERDICT_DIR"], "x.jsonl").write_text("no JSON\n")
    if "verdict-pipe" in WORDS:
        os.mkfifo(Path(os.environ["DSH_SNAPSHOT_VERDICT_DIR"], "x.jsonl"))
    if "removes-all" in WORDS:
        shutil.rmtree(os.environ["DSH_SNAPSHOT_RUN"])
    if "tell-key" in WORDS:
        sys.stderr.write(f"the key is {os.environ.get('FAKE_KEY')}\n")
    if "exit" in WORDS or "half-line" in WORDS or ("exit-in-replay" in WORDS and not LIVE):
        sys.stderr.write("I am gone\n")
        sys.stderr.flush()
        os._exit(3)
    if "big-frame" in WORDS:
        content = {"type": "text", "text": "x" * 10_000_000}
        agent.update(session, {"sessionUpdate": "agent_message_chunk", "content": content})
    if "stderr-flood" in WORDS:
        os.write(2, b"e" * 3_000_000)
    if "grandchild" in WORDS:
        subprocess.Popen(["sleep", "60"])  # noqa: S607
    if "escaped" in WORDS:
        subprocess.Popen(["sleep", "61"], start_new_session=True)  # noqa: S607
    if "endless-child" in WORDS:
        subprocess.Popen(["yes", '{"method":"fake/more"}'])  # noqa: S607
    if "endless-frames" in WORDS:
        while True:
            agent.send({"method": "fake/more"})
    if "hang" in WORDS:
        threading.Event().wait()
    if "close-stdout" in WORDS:
        os.close(1)
        threading.Event().wait()
    if "ask-unknown" in WORDS:
        agent.ask("fake/unknown", {"sessionId": session})


def main() -> None:  # noqa: C901  a list of faults
    if "ignore-term" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "early-noise" in WORDS:
        sys.stdout.write("starting\n")
        sys.stdout.flush()
    if "no-stdin" in WORDS:
        threading.Event().wait()
    agent = Agent()
    for line in sys.stdin.buffer:
        agent.take(json.loads(line))
    if "late-update" in WORDS:
        agent.turn.join()
    if "ignore-eof" in WORDS:
        threading.Event().wait()
    if "cut-log" in WORDS:
        for log in agent.logs.values():
            log.cut()
    if "bad-exit" in WORDS:
        os._exit(4)
    if "late-frame" in WORDS:
        agent.send({"method": "fake/late", "params": {}})


main()
