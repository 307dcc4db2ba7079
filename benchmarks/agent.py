"""What the example agent costs for one replayed text turn, beside the import of its SDK."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIOS = Path(__file__).parents[1] / "scenarios"
ROUNDS = 9
MOST = 1.5
TOLERANCE = 1.25


def main() -> int:
    """Measure in turns, print the table, and judge the ratio of the medians."""
    rounds = [(import_sdk(), run_agent()) for _ in range(ROUNDS + 1)][1:]
    bare, whole = (statistics.median(times) * 1000 for times in zip(*rounds, strict=True))
    print(f"{'the agent, one text turn':<34}{'ms':>9}{'ratio':>9}{'goal':>9}")
    print(f"{'import acp':<34}{bare:>9.0f}{1:>9.2f}")
    print(f"{'started, prompted, left':<34}{whole:>9.0f}{whole / bare:>9.2f}{f'≤ {MOST}':>9}")
    return 1 if whole / bare > MOST * TOLERANCE else 0


def import_sdk() -> float:
    """Return the seconds that a process takes which only imports the SDK."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import acp"], check=True, env=environment())
    return time.perf_counter() - start


def run_agent() -> float:
    """Return the seconds from starting the agent to its end."""
    command = [sys.executable, "-m", "acp_example", "--config", str(SCENARIOS / "agent.toml")]
    with tempfile.TemporaryDirectory() as run:
        start = time.perf_counter()
        with subprocess.Popen(  # noqa: S603  our own command
            command,
            env={**environment(), **snapshot(run)},
            cwd=run,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as agent:
            talk(agent, run)
        if agent.returncode:
            raise SystemExit(f"the agent left with status {agent.returncode}")
        return time.perf_counter() - start


def talk(agent: subprocess.Popen[bytes], cwd: str) -> None:
    """Hold one turn, and end the agent's input."""
    ask(agent, 1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = ask(agent, 2, "session/new", {"cwd": cwd, "mcpServers": []})["sessionId"]
    prompt = [{"type": "text", "text": "Go."}]
    ask(agent, 3, "session/prompt", {"sessionId": session, "prompt": prompt})
    if agent.stdin is not None:
        agent.stdin.close()


def ask(agent: subprocess.Popen[bytes], number: int, method: str, params: object) -> dict[str, str]:
    """Send a request, and return its result."""
    if agent.stdin is None or agent.stdout is None:
        raise SystemExit("the agent has no pipes")
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    agent.stdin.write(json.dumps(request).encode() + b"\n")
    agent.stdin.flush()
    for line in agent.stdout:
        frame = json.loads(line)
        if frame.get("id") == number and "result" in frame:
            result: dict[str, str] = frame["result"]
            return result
    raise SystemExit(f"the agent did not answer {method}")


def environment() -> dict[str, str]:
    """Return an environment in which compiled modules are kept, as the harness gives it."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def snapshot(run: str) -> dict[str, str]:
    """Return the variables of a replay of `text-turn`."""
    folders = {name: Path(run) / name for name in ("sessions", "spill", "verdict")}
    for folder in folders.values():
        folder.mkdir()
    return {
        "DSH_SNAPSHOT": "replay",
        "DSH_SNAPSHOT_FILE": str(SCENARIOS / "text-turn" / "session.jsonl"),
        "DSH_SNAPSHOT_SESSIONS_ROOT": str(folders["sessions"]),
        "DSH_SNAPSHOT_SPILL_ROOT": str(folders["spill"]),
        "DSH_SNAPSHOT_VERDICT_DIR": str(folders["verdict"]),
        "DSH_SNAPSHOT_RUN": run,
        "TMPDIR": run,
    }


if __name__ == "__main__":
    sys.exit(main())
