"""A small chat-completions server on the loopback address, which streams in odd cuts."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]
Delta = dict[str, Any]
Reply = Callable[[Request], list[Delta]]

_CUTS = (1, 7, 64, 3, 200, 2, 31)


class RefusedError(Exception):
    """Raised instead of an answer: the endpoint answers with status 400."""


def words(*parts: str) -> list[Delta]:
    """An answer in text, in these pieces."""
    return [{"content": part} for part in parts]


def letters(text: str, size: int) -> list[Delta]:
    """An answer in text, in pieces of a size."""
    return words(*(text[at : at + size] for at in range(0, len(text), size)))


def calls(*named: tuple[str, dict[str, Any]]) -> list[Delta]:
    """An answer that calls tools, their arguments cut anywhere."""
    deltas: list[Delta] = [{"reasoning_content": "Let me "}, {"reasoning_content": "see."}]
    for index, (name, arguments) in enumerate(named):
        start = {"index": index, "id": f"call_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**start, "function": {"name": name, "arguments": ""}}]})
        text = json.dumps(arguments)
        for at in range(0, len(text), 5):
            piece = {"index": index, "function": {"arguments": text[at : at + 5]}}
            deltas.append({"tool_calls": [piece]})
    return deltas


def results(request: Request) -> list[str]:
    """What the tools of the conversation answered."""
    return [str(one["content"]) for one in request["messages"] if one["role"] == "tool"]


def asked(request: Request) -> str:
    """What the user said last."""
    said = [one["content"] for one in request["messages"] if one["role"] == "user"]
    last = said[-1]
    return last if isinstance(last, str) else "".join(part.get("text", "") for part in last)


@contextmanager
def chat_endpoint(reply: Reply) -> Iterator[str]:
    """Serve answers; yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                deltas = reply(json.loads(body))
            except RefusedError:
                self._refuse()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in _cut(_events(deltas)):
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def _refuse(self) -> None:
            body = b'{"error": {"message": "not that"}}'
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: the test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _events(deltas: list[Delta]) -> bytes:
    reason = "tool_calls" if any("tool_calls" in delta for delta in deltas) else "stop"
    choices = [{"index": 0, "delta": delta} for delta in [{"role": "assistant"}, *deltas]]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    usage = {"prompt_tokens": 10, "completion_tokens": len(deltas)}
    payloads: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
    payloads.append({"choices": [], "usage": usage})
    lines = [f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return ": a comment\n\n".join(["", *lines, "data: [DONE]\n\n"]).encode()


def _cut(data: bytes) -> Iterator[bytes]:
    position = 0
    for size in itertools.cycle(_CUTS):
        if position >= len(data):
            return
        yield data[position : position + size]
        position += size
