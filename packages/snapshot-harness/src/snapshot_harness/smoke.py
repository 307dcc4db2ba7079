"""`snapshot-harness smoke`: one live prompt, to see that key, endpoint and agent fit together."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from snapshot_harness.boot import Run, run_agent, run_directory
from snapshot_harness.credentials import redact
from snapshot_harness.gate import GateError, check_keys, endpoint_of, keys_for, unnamed_keys
from snapshot_harness.modes import on_ci
from snapshot_harness.record import usage_of
from snapshot_harness.steps import Script
from snapshot_harness.suite import Scenario, Suite, read_suite

PROMPT = "Reply with one short sentence: which tools do you have?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `smoke` takes."""
    parser.add_argument("suite", type=Path, help="suite.toml or its directory")
    parser.add_argument("--prompt", default=PROMPT, help="what to say (default: %(default)r)")
    parser.add_argument("--config", help="another composition, relative to suite.toml")
    parser.add_argument("--snapshot-on-ci", action="store_true", help="allow it although CI is set")


def run_smoke(options: argparse.Namespace) -> int:
    """Send one prompt to the live model; write nothing that stays.

    Raises:
        GateError: It runs on CI, or the key is missing.
        ScenarioError: suite.toml is not in order.
    """
    path: Path = options.suite
    suite = read_suite(path / "suite.toml" if path.is_dir() else path)
    if on_ci(os.environ) and not options.snapshot_on_ci:
        raise GateError(
            "smoke calls a live model, and CI is set\n"
            "  hint: --snapshot-on-ci allows it, on purpose and in plain sight"
        )
    check_keys(suite)
    started = time.monotonic()
    _say(f"calling {endpoint_of(suite)}")
    for line in unnamed_keys(suite):
        _say(line)
    run = _ask(suite, options.prompt, config=options.config)
    problems = list(_problems(run))
    secrets = {**os.environ, **keys_for(suite)}
    if problems:
        complaint = "\n".join([*problems, run.stderr_tail])
        sys.stderr.write(f"snapshot-harness: {redact(complaint, secrets).rstrip()}\n")
        return 1
    _say(redact(answer_of(run), secrets))
    _say(f"{usage_of(run.logs)}, {time.monotonic() - started:.1f} s")
    return 0


def answer_of(run: Run) -> str:
    """Return what the agent said to the client, as one text."""
    return "".join(_texts(run))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _texts(run: Run) -> Iterator[str]:
    for frame in run.transcript:
        params = frame.get("params")
        update = params.get("update") if isinstance(params, Mapping) else None
        if isinstance(update, Mapping) and update.get("sessionUpdate") == "agent_message_chunk":
            content = update.get("content")
            yield str(content.get("text", "")) if isinstance(content, Mapping) else ""


def _problems(run: Run) -> Iterator[str]:
    if run.failure is not None:
        yield str(run.failure)
    yield from run.findings
    if run.failure is None and not answer_of(run).strip():
        yield "the agent said nothing\n  hint: look at the agent's stderr below"


def _ask(suite: Suite, prompt: str, *, config: str | None) -> Run:
    """Run the agent as record does, for a scenario that exists only as long as this."""
    steps = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": prompt}]
    extra = {**keys_for(suite), **suite.file.record_env}
    with run_directory() as staging:
        directory = staging.path / "tmp" / "smoke"
        directory.mkdir()
        lines = ['why = "Does the live model answer?"', 'origin = "recorded"']
        if config is not None:
            lines.append(f"config = '{config}'")
        (directory / "scenario.toml").write_text("\n".join(lines) + "\n", "utf-8")
        script = Script.model_validate({"steps": steps})
        return run_agent(suite, Scenario(directory), script, files=None, extra_env=extra)
