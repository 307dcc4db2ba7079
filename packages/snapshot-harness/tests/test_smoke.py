from pathlib import Path

import pytest

from snapshot_harness.__main__ import main

AGENT = """
import json, os, sys

def answer(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    match request["method"]:
        case "initialize":
            answer(request, {"protocolVersion": 1, "agentCapabilities": {}})
        case "session/new":
            answer(request, {"sessionId": "s"})
        case "session/prompt":
            text = request["params"]["prompt"][0]["text"]
            said = {"silent": "", "key": os.environ["SOME_API_KEY"]}.get(text, f"You said {text}.")
            content = {"type": "text", "text": said}
            chunk = {"sessionUpdate": "agent_message_chunk", "content": content}
            params = {"sessionId": "s", "update": chunk}
            print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            answer(request, {"stopReason": "end_turn"})
print("mode", os.environ["DSH_SNAPSHOT"], file=sys.stderr)
"""
KEY = "sk-0123456789abcdef0123456789abcdef"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("SOME_API_KEY", KEY)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "suite.toml").write_text(
        'command = ["{python}", "{suite}/agent.py"]\nlog = "none"\nkeys = ["SOME_API_KEY"]\n'
        '[record]\nendpoint = "https://api.example.test"\n'
    )
    return tmp_path


def test_smoke_says_whom_it_calls_and_what_came_back(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(suite.rglob("*"))

    assert main(["smoke", str(suite), "--prompt", "hello"]) == 0

    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["calling https://api.example.test", "You said hello."]
    assert out[2].startswith("0 calls, 0 tokens, ")
    assert sorted(suite.rglob("*")) == before


def test_smoke_fails_where_the_agent_says_nothing(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["smoke", str(suite / "suite.toml"), "--prompt", "silent"]) == 1
    assert capsys.readouterr().err == (
        "snapshot-harness: the agent said nothing\n"
        "  hint: look at the agent's stderr below\nmode record\n"
    )


def test_smoke_never_prints_a_key(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", str(suite), "--prompt", "key"]) == 0
    assert KEY not in capsys.readouterr().out


def test_smoke_needs_a_key(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SOME_API_KEY")

    assert main(["smoke", str(suite)]) == 2
    assert "no key is there" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1", "true"])
def test_smoke_is_refused_on_ci(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.setenv("CI", value)

    assert main(["smoke", str(suite)]) == 2
    assert capsys.readouterr().err == (
        "snapshot-harness: smoke calls a live model, and CI is set\n"
        "  hint: --snapshot-on-ci allows it, on purpose and in plain sight\n"
    )
    assert main(["smoke", str(suite), "--snapshot-on-ci", "--prompt", "x"]) == 0


def test_smoke_takes_another_composition(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (suite / "suite.toml").read_text()
    (suite / "suite.toml").write_text(text.replace("agent.py", "{config}", 1))
    (suite / "suite.toml").write_text(
        (suite / "suite.toml")
        .read_text()
        .replace("{suite}/{config}", "{config}")
        .replace("log =", 'config = "gone.py"\nlog =')
    )
    (suite / "gone.py").write_text("raise SystemExit(3)\n")

    assert main(["smoke", str(suite), "--config", "agent.py", "--prompt", "x"]) == 0
    assert "You said x." in capsys.readouterr().out
    assert main(["smoke", str(suite)]) == 1
