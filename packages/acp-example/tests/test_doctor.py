"""The doctor looks at a composition on disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from model_endpoint import KEY, Endpoint

from acp_example.__main__ import main
from acp_example.doctor import examine


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
