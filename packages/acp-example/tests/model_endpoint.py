"""An endpoint that lists its models, on the loopback address."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-for-this-test-only"


class Endpoint:
    """A server with a list of models, and what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: Any = {"data": [{"id": "m"}, {"id": "n"}]}
        self.keys: list[str | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.path == "/v1/models"
                endpoint.keys.append(self.headers["authorization"])
                self.send_response(endpoint.status)
                self.end_headers()
                self.wfile.write(json.dumps(endpoint.answer).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Serve until the end of the block."""
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, args=[0.01])
    thread.start()
    yield endpoint
    endpoint.server.shutdown()
    thread.join()
    endpoint.server.server_close()
