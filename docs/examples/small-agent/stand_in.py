"""A stand-in for a model: it reads a file, then answers with its first line.

It listens on a free port of this machine, prints where, and goes on in the
background until nobody has asked it anything for a minute.
"""

import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

IDLE_S = 60


def answer(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pieces of the next answer, as an endpoint streams them."""
    last = messages[-1]
    if last["role"] == "tool":
        words = re.findall(r"\S+\s*", last["content"].partition("\n")[0])
        return [{"content": word} for word in words]
    name = re.search(r"\w+\.\w+", last["content"])
    if name is None:
        return [{"content": "Which "}, {"content": "file?"}]
    first, second = '{"pa', f'th": "{name[0]}"}}'
    call = {"index": 0, "id": "call_1", "type": "function"}
    return [
        {"tool_calls": [{**call, "function": {"name": "read_file", "arguments": first}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": second}}]},
    ]


class StandIn(BaseHTTPRequestHandler):
    """Answers `POST /v1/chat/completions`."""

    def do_POST(self) -> None:
        """Stream an answer as server-sent events."""
        size = int(self.headers["content-length"])
        deltas = answer(json.loads(self.rfile.read(size))["messages"])
        reason = "tool_calls" if "tool_calls" in deltas[0] else "stop"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta in deltas:
            self.event({"choices": [{"index": 0, "delta": delta}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, data: dict[str, Any]) -> None:
        """Write one event."""
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


class Server(HTTPServer):
    """A server that ends when nobody wants it."""

    timeout = IDLE_S

    def handle_timeout(self) -> None:
        """End the process."""
        sys.exit()


server = Server(("127.0.0.1", 0), StandIn)
print(f"BASE_URL=http://127.0.0.1:{server.server_port}/v1", flush=True)
if os.fork() == 0:
    for stream in (0, 1, 2):
        os.close(stream)
    while True:
        server.handle_request()
