"""Record a scenario from a live model: its words from the live run, all else from a replay."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llm_replay.derive import derive_calls
from llm_replay.session_log import SessionLog
from snapshot_harness.boot import Run, run_agent, run_directory
from snapshot_harness.causes import render
from snapshot_harness.compare import compare
from snapshot_harness.conditions import Interrupting
from snapshot_harness.exceptions import HarnessError, Problem, ScenarioError
from snapshot_harness.fixtures import INPUT, SCENARIO, log_bytes, log_name, roll_forward
from snapshot_harness.gate import check_keys, endpoint_of, keys_for, shown_url
from snapshot_harness.kept import forget
from snapshot_harness.modes import Mode
from snapshot_harness.normalize import normalize_run
from snapshot_harness.prepare import Prepared, prepare_staged
from snapshot_harness.recorded_table import with_recorded
from snapshot_harness.run import Outcome, Usage, failed, finish, problems_of
from snapshot_harness.steps import PromptAndCancel, Script, read_script
from snapshot_harness.suite import Scenario, Suite, rules_of_run
from snapshot_harness.writing import files_of, refusals, write

Say = Callable[[str], None]


class RecordingFailedError(HarnessError):
    """A step of recording failed; nothing was written."""

    def __init__(self, step: str, problems: Sequence[str], stderr_tail: str = "") -> None:
        self.stderr_tail = stderr_tail
        self.problems = [f"{step}; nothing was written", *problems]
        super().__init__("\n".join(self.problems))


def record_scenario(suite: Suite, scenario: Scenario, *, say: Say = lambda _: None) -> Outcome:
    """Record one scenario, and say what it came to. What fails leaves the old files."""
    started = time.monotonic()
    report = failed(scenario, Mode.RECORD, [])
    environ: Mapping[str, str] = os.environ
    spent: list[Usage] = []
    try:
        check_keys(suite)
        keys = keys_for(suite)
        environ = {**os.environ, **keys}
        outcome = _record(suite, scenario, keys, say, spent)
    except RecordingFailedError as error:
        failure = replace(report, problems=error.problems, stderr_tail=error.stderr_tail)
        outcome = Outcome(report=failure)
    except (HarnessError, OSError, RecursionError) as error:
        outcome = Outcome(report=replace(report, problems=problems_of(error), outcome="error"))
    outcome = replace(outcome, usage=spent[0] if spent else None)
    return finish(outcome, environ, started)


def _record(
    suite: Suite, scenario: Scenario, keys: Mapping[str, str], say: Say, spent: list[Usage]
) -> Outcome:
    directory = scenario.directory
    roll_forward(directory)
    steps = read_script(directory / INPUT)
    _check(suite, scenario, steps)
    say(f"{scenario.name}: calling {endpoint_of(suite)}")
    extra = {**keys, **suite.file.record_env}
    run = run_agent(suite, scenario, steps, files=None, extra_env=extra)
    spent.append(usage_of(run.logs))
    _raise_on("the live run failed", [str(run.failure)] if run.failure else run.findings, run)
    say(f"{scenario.name}: {spent[0]}; replaying twice")
    with run_directory() as staging:
        prepared = _stage(suite, scenario, steps, run, staging.path / "tmp")
        first, second = (_replay(prepared, number) for number in ("first", "second"))
    actual = prepared.actual(first)
    causes = compare(actual, prepared.actual(second))
    report = failed(scenario, Mode.RECORD, [])
    moving = [render(causes[:1], directory=str(report.directory))] if causes else []
    _raise_on("two replays of the recording differ; this field moves", moving, second)
    headers = prepared.told(first, actual)
    new = files_of(actual, scenario.file, headers=headers, with_logs=True)
    text = (directory / SCENARIO).read_text("utf-8")
    new[SCENARIO] = with_recorded(text, _facts(suite, run)).encode()
    leaks = refusals(new, first.roots, {**os.environ, **keys})
    _raise_on("the recording may not be committed", leaks, first)
    written = write(directory, new, with_logs=True)
    forget(suite.directory, scenario.name)
    report = replace(report, outcome="passed", written=written, notes=run.notes)
    return Outcome(report=report, headers=headers)


def usage_of(logs: Sequence[SessionLog]) -> Usage:
    """Return how many calls a run made, and the tokens they report."""
    calls = sum(len(derive_calls(log.events, seed_length=log.header.seed_length)) for log in logs)
    return Usage(calls, sum(_tokens(usage) for log in logs for usage in _usages(log)))


def _check(suite: Suite, scenario: Scenario, steps: Script) -> None:
    problems = []
    if suite.file.log == "none":
        what = "the agent persists no session log, so there is nothing to record from"
        hint = 'say `origin = "authored"`, and write session.jsonl by hand'
        problems.append(Problem(path=scenario.directory / SCENARIO, what=what, hint=hint))
    try:
        with_recorded((scenario.directory / SCENARIO).read_text("utf-8"), {})
    except ValueError:
        what = "`recorded` stands there in a form that record can't replace"
        hint = "remove it: record writes it, as a table of its own"
        problems.append(Problem(path=scenario.directory / SCENARIO, what=what, hint=hint))
    for index, step in enumerate(steps.steps):
        detached = index > 0 and getattr(steps.steps[index - 1], "detach", False)
        cuts = isinstance(step, PromptAndCancel) or (detached and isinstance(step, Interrupting))
        if isinstance(step, Interrupting) and cuts and step.condition is None:
            what = f"steps.{index}: a live model hangs nowhere on purpose"
            hint = "say when to cut the call: `wait` takes any wait operation"
            problems.append(Problem(path=scenario.directory / INPUT, what=what, hint=hint))
    if problems:
        raise ScenarioError(problems=problems)


def _stage(suite: Suite, scenario: Scenario, steps: Script, run: Run, folder: Path) -> Prepared:
    """Write the live run's words as a script: not yet among the scenario's own files."""
    live = normalize_run(run.logs, [], roots=run.roots, rules=rules_of_run(suite, scenario))
    paths = [folder / log_name(number) for number in range(len(live.logs))]
    for path, log in zip(paths, live.logs, strict=True):
        path.write_bytes(log_bytes(log, layout=scenario.file.layout))
    if not paths:
        raise RecordingFailedError("the live run left no session log", [], run.stderr_tail)
    return prepare_staged(suite, scenario, steps, paths)


def _replay(prepared: Prepared, number: str) -> Run:
    run, problems = prepared.replay()
    _raise_on(f"the {number} replay of the recording failed", problems, run)
    lost = prepared.unlogged(run, prepared.actual(run))
    _raise_on(f"the {number} replay of the recording differs", lost, run)
    return run


def _raise_on(step: str, problems: Sequence[str], run: Run) -> None:
    if problems:
        raise RecordingFailedError(step, problems, run.stderr_tail)


def _facts(suite: Suite, run: Run) -> dict[str, str]:
    """Return what the `[recorded]` table says."""
    record = suite.file.record
    custom = record.base_url_env is not None and record.base_url_env in keys_for(suite)
    endpoint = f"${record.base_url_env}" if custom else shown_url(record.endpoint)
    facts = {
        "endpoint": endpoint,
        "model": _model(run.logs) or record.model,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "agent": _agent(run.transcript),
    }
    return {name: value for name, value in facts.items() if value}


def _model(logs: Sequence[SessionLog]) -> str:
    for log in logs:
        for event in log.events:
            data = event.get("data")
            if event.get("type") == "request/context" and isinstance(data, dict):
                return str(data.get("model") or "")
    return ""


def _agent(transcript: Sequence[Mapping[str, Any]]) -> str:
    for frame in transcript:
        result = frame.get("result")
        info = result.get("agentInfo") if isinstance(result, dict) else None
        if isinstance(info, dict):
            return f"{info.get('name', '')} {info.get('version', '')}".strip()
    return ""


def _usages(log: SessionLog) -> Iterator[object]:
    """Yield what calls say of their tokens: as a chunk, or with the summary that they wrote."""
    for event in log.events:
        data = event.get("data")
        if not isinstance(data, dict):
            continue
        chunk = data.get("chunk")
        if event.get("type") == "assistant/chunk" and isinstance(chunk, dict):
            yield chunk.get("usage") if chunk.get("type") == "usage" else None
        elif event.get("type") == "compaction/summary" and data.get("llmStreamCall") is True:
            yield data.get("usage")


def _tokens(usage: object) -> int:
    if not isinstance(usage, dict):
        return 0
    counts = (usage.get(key) for key in ("inputTokens", "outputTokens", "cacheReadTokens"))
    return sum(count for count in counts if isinstance(count, int))
