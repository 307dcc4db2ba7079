"""The doctor looks at a real endpoint on the loopback address, and at a composition on disk."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from acp_example.__main__ import main
from acp_example.doctor import examine
from acp_example.findings import Finding
from acp_example.provider import ChatAdapter, Config

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


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, args=[0.01])
    thread.start()
    yield endpoint
    endpoint.server.shutdown()
    thread.join()
    endpoint.server.server_close()


def composition(folder: Path, base_url: str, *, tools: bool = True, model: str = "m") -> Path:
    file = folder / "agent.toml"
    plugin = '[[plugin]]\nid = "tools"\nuse = "acp_example.builtin"\n' if tools else ""
    file.write_text(f"""
[agent]
provider = "local"
model = {model!r}
permission_mode = "workspace-write"

[log]
sessions_root = "{folder}/state/sessions"

[[plugin]]
id = "off"
use = "acp_example.executor"
disabled = true

[[plugin]]
id = "local"
use = "acp_example.provider"
[plugin.config]
id = "local"
name = "Local"
base_url = "{base_url}"
key_env = "LOCAL_KEY"
models = [{{ id = {model!r} }}]

{plugin}""")
    return file


def told(file: Path, environ: dict[str, str]) -> tuple[int, str]:
    lines: list[str] = []
    status = examine(file, environ, lines.append)
    return status, "\n".join(lines)


def test_the_doctor_tells_what_is_composed_and_never_the_key(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_KEY", KEY)
    (tmp_path / "bash").touch(mode=0o755)
    file = composition(tmp_path, endpoint.url)

    status, text = told(file, {"PATH": str(tmp_path)})

    assert status == 0
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert text.splitlines() == [
        f"ok  composition  {file}",
        "ok  model        local/m",
        "ok  permissions  workspace-write, approvals on-request",
        "ok  plugin       off: acp_example.executor (disabled)",
        "ok  plugin       local: acp_example.provider",
        "ok  plugin       tools: acp_example.builtin",
        "ok  tools        bash, edit, glob, grep, read, task, todo, write",
        f"ok  shell        {tmp_path}/bash",
        f"ok  sessions     {tmp_path}/state/sessions",
        "ok  provider     Local, models m",
        "ok  key          LOCAL_KEY from the environment",
        f"ok  endpoint     {endpoint.url} answers (200)",
    ]


def test_the_doctor_tells_what_is_missing(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL_KEY", raising=False)

    status, text = told(composition(tmp_path, endpoint.url, tools=False), {"PATH": ""})

    assert status == 1
    assert endpoint.keys == []
    assert text.splitlines()[5:] == [
        "!!  tools        none",
        "                 hint: without tools a model can only talk: add acp_example.builtin",
        f"ok  sessions     {tmp_path}/state/sessions",
        "ok  provider     Local, models m",
        "!!  key          there is no key for Local: set LOCAL_KEY, or configure key_env",
        "                 hint: an endpoint that needs no key has an empty key_env",
    ]


def test_the_doctor_misses_a_shell_and_a_place_for_logs(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_KEY", KEY)
    (tmp_path / "state").touch()

    status, text = told(composition(tmp_path, endpoint.url), {"PATH": str(tmp_path)})

    assert status == 1
    assert (
        "!!  shell        there is no bash in PATH\n"
        "                 hint: install it, or disable the tool\n"
        f"!!  sessions     {tmp_path}/state/sessions can't be written\n"
        f"                 hint: look at {tmp_path}/state, or set sessions_root\n"
    ) in text


def test_the_doctor_tells_every_problem_of_a_composition(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"

    status, text = told(file, {})

    assert status == 1
    assert text == (
        f"!!  composition  {file}: can't be read: No such file or directory\n"
        "                 hint: correct it; the agent starts with none"
    )


def test_a_replayed_provider_has_nobody_to_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    composition(tmp_path, "http://127.0.0.1:1")
    overlay = tmp_path / "agent.snapshot.toml"
    overlay.write_text("""
extends = "agent.toml"
[[patch]]
id = "local"
disabled = true
[[insert]]
id = "llm-replay"
use = "llm_replay.plugin"
[[insert.config.providers]]
id = "local"
name = "Recorded"
models = [{ id = "m" }]
""")
    fixture = tmp_path / "session.jsonl"
    fixture.write_text('{"type":"session","version":1,"id":"s","createdAt":0,"delegationDepth":0}')
    monkeypatch.setenv("DSH_SNAPSHOT_FILE", str(fixture))
    for name in ("CHILD_FILES", "OVERRIDE", "VERDICT_DIR"):
        monkeypatch.delenv(f"DSH_SNAPSHOT_{name}", raising=False)

    status, text = told(
        tmp_path / "agent.toml", {"DSH_SNAPSHOT": "replay", "PATH": "/bin:/usr/bin"}
    )

    assert (status, text.splitlines()[-1]) == (0, "ok  provider     Recorded, models m")


def test_the_command_line_has_a_doctor(
    tmp_path: Path,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LOCAL_KEY", KEY)
    monkeypatch.delenv("DSH_SNAPSHOT", raising=False)

    status = main(["doctor", "--config", str(composition(tmp_path, endpoint.url))])

    assert status == 0
    printed = capsys.readouterr().out
    assert "ok  model        local/m\n" in printed
    assert KEY not in printed


@pytest.mark.parametrize("stderr", ["", "2>&-"], ids=["ordinary", "without stderr"])
def test_the_doctor_is_heard_through_a_pipe(tmp_path: Path, stderr: str) -> None:
    command = [sys.executable, "-m", "acp_example", "doctor"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    done = subprocess.run(  # noqa: S603  our own program
        ["/bin/sh", "-c", f'exec "$@" {stderr}', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        f"!!  composition  {tmp_path}/agent.toml: can't be read: No such file or directory\n"
        "                 hint: correct it; the agent starts with none\n"
    )


def checked(base_url: str, **config: Any) -> list[Finding]:  # noqa: ANN401  the plugin's keys
    parsed = Config.model_validate(
        {"base_url": base_url, "key_env": None, "models": [{"id": "m"}], **config}
    )
    return asyncio.run(ChatAdapter(parsed, environment={}).check())


def test_an_endpoint_without_a_key_is_looked_at_without_one(endpoint: Endpoint) -> None:
    assert checked(endpoint.url) == [
        Finding("key", "none, and none is needed"),
        Finding("endpoint", f"{endpoint.url} answers (200)"),
    ]
    assert endpoint.keys == [None]


def test_a_key_in_a_file_is_told_by_the_file(tmp_path: Path, endpoint: Endpoint) -> None:
    file = tmp_path / ".env"
    file.write_text(f"LOCAL_KEY={KEY}")

    key, reached = checked(endpoint.url, key_env="LOCAL_KEY", env_file=str(file))

    assert key == Finding("key", f"LOCAL_KEY from {file}")
    assert reached.hint is None
    assert endpoint.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("status", [401, 403])
def test_an_endpoint_that_refuses_the_key_is_told(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status

    assert checked(endpoint.url)[1] == Finding(
        "endpoint",
        f"{endpoint.url} refuses the key ({status})",
        "look at the variable that key_env names",
    )


def test_a_model_that_the_endpoint_does_not_list_is_told(endpoint: Endpoint) -> None:
    assert checked(endpoint.url, models=[{"id": "m"}, {"id": "x"}])[2:] == [
        Finding("endpoint", "it does not offer 'x'", "it offers m, n")
    ]


@pytest.mark.parametrize("answer", [{}, {"data": None}, {"data": [{}]}, [], "text"])
def test_an_endpoint_that_lists_nothing_is_taken_as_it_is(
    endpoint: Endpoint, answer: object
) -> None:
    endpoint.answer = answer
    endpoint.status = 404

    assert checked(endpoint.url)[1:] == [Finding("endpoint", f"{endpoint.url} answers (404)")]


def test_an_endpoint_that_is_not_there_is_told() -> None:
    assert checked("http://127.0.0.1:1")[1] == Finding(
        "endpoint",
        "http://127.0.0.1:1 does not answer: All connection attempts failed",
        "is the server running, and the base URL right?",
    )


def test_no_secret_of_url_or_headers_is_told() -> None:
    findings = checked(
        "http://someone:sk-in-the-url@127.0.0.1:9/v1",
        key_env="",
        headers={"x-api-key": "sk-in-a-header", "accept": "text"},
    )

    shown = "\n".join(map(str, findings))
    assert "http://[key]@127.0.0.1:9/v1 does not answer" in shown
    assert "sk-in" not in shown


@pytest.mark.parametrize("value", ["sk-secr\N{LATIN SMALL LETTER E WITH ACUTE}t", "sk-secret\n"])
def test_a_header_that_cannot_be_sent_is_a_problem_that_does_not_tell_it(
    tmp_path: Path, value: str
) -> None:
    file = composition(tmp_path, "http://127.0.0.1:9/v1")
    file.write_text(
        file.read_text().replace(
            "base_url =", f"headers = {{ x-key = {json.dumps(value)} }}\nbase_url ="
        )
    )

    status, shown = told(file, {"HOME": str(tmp_path)})

    assert status == 1
    assert "'x-key' holds a character that no HTTP header can carry" in shown
    assert "sk-secr" not in shown
