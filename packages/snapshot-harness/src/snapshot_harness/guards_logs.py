"""What a scenario's logs, its transcript and its sidecar must be to replay and compare."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.exceptions import OverrideError
from llm_replay.override import Replacement, SessionOverride, apply_override, repeats_log
from llm_replay.session_log import SessionLog, sort_logs
from snapshot_harness.exceptions import FixtureError, Problem
from snapshot_harness.fixtures import (
    INPUT,
    OVERRIDE,
    SESSION,
    TRANSCRIPT,
    Fixture,
    log_bytes,
    read_fixture,
    read_overrides,
    transcript_bytes,
)
from snapshot_harness.guards_rows import row_problems
from snapshot_harness.model_rows import seed_length
from snapshot_harness.normalize import normalize_fixture
from snapshot_harness.steps import (
    Cancel,
    Notify,
    Prompt,
    PromptAndCancel,
    PromptContent,
    RestartAgent,
    Script,
    SendRaw,
)
from snapshot_harness.suite import Scenario, ScenarioFile, Suite, rules_of

_CANCELS = ("session/cancel", "$/cancel_request")


def log_problems(
    suite: Suite, scenario: Scenario, file: ScenarioFile, script: Script | None
) -> Iterator[Problem]:
    """Yield what is wrong with what a scenario replays and compares."""
    directory = scenario.directory
    has = {name: (directory / name).is_file() for name in (SESSION, TRANSCRIPT, OVERRIDE)}
    if not has[SESSION]:
        return  # told as a missing file, where it is one
    overridden = file.overridden and has[OVERRIDE]
    try:
        fixture = read_fixture(directory, overridden=overridden, transcript=has[TRANSCRIPT])
        overrides = read_overrides(directory, len(fixture.logs)) if overridden else {}
    except FixtureError as error:
        yield from error.problems
        return
    calls = [
        derive_calls(log.events, seed_length=seed_length(log) if place else 0)
        for place, log in enumerate(fixture.logs)
    ]
    yield from _order(fixture)
    yield from _scripts(fixture, calls, overrides)
    yield from _rows(fixture, file)
    if script is not None:
        yield from _fixed_points(suite, file, fixture, script)
        hangs = any(_hangs(own, overrides.get(place)) for place, own in enumerate(calls))
        yield from _waits(directory / INPUT, file, script, hangs=hangs)


def _rows(fixture: Fixture, file: ScenarioFile) -> Iterator[Problem]:
    for place, log in enumerate(fixture.logs):
        yield from row_problems(
            fixture.directory / log.name,
            log,
            overridden=fixture.overridden.get(place, ()),
            primary=not place,
            malformed=file.malformed,
            authored=file.origin == "authored",
        )


def _order(fixture: Fixture) -> Iterator[Problem]:
    order = sort_logs([log.header for log in fixture.logs])
    for place, right in enumerate(order):
        if place != right:
            log = fixture.logs[place]
            yield Problem(
                path=fixture.directory / log.name,
                line=1,
                what=f"{fixture.logs[right].name} belongs in its place",
                why="Files stand in order of lineage, which is the order of binding.",
                hint="rename the logs, or record the scenario again",
            )
            return


def _scripts(
    fixture: Fixture, calls: Sequence[list[DerivedCall]], overrides: dict[int, SessionOverride]
) -> Iterator[Problem]:
    path = fixture.directory / OVERRIDE
    for place, (log, own) in enumerate(zip(fixture.logs, calls, strict=True)):
        override = overrides.get(place)
        try:
            entries = apply_override(own, override, where=OVERRIDE, session=place)
        except OverrideError as error:
            yield Problem(path=path, what=str(error))
            continue
        if override is not None and repeats_log(override, own):
            yield Problem(
                path=path,
                what=f"it says what {log.name} derives to anyway",
                why="A log holds the rows of plain entries itself once it was refreshed.",
                hint=f"remove {OVERRIDE}, and `overridden` from scenario.toml",
            )
        if isinstance(override, Replacement):
            continue
        for call, entry in zip(own, entries, strict=False):
            if entry is None:
                yield _hole(fixture.directory / log.name, log, call)


def _hole(path: Path, log: SessionLog, call: DerivedCall) -> Problem:
    what, *rest = str(call.error("")).removeprefix(": ").split("\n")
    texts = [line.strip() for line in rest]
    return Problem(
        path=path,
        line=log.lines[call.place],
        what=what,
        why=next((text for text in texts if not text.startswith("hint: ")), ""),
        hint=next((text[6:] for text in texts if text.startswith("hint: ")), ""),
    )


def _hangs(calls: Sequence[DerivedCall], override: SessionOverride | None) -> bool:
    try:
        entries = apply_override(calls, override)
    except OverrideError:
        return False
    return any(entry is not None and entry.get("kind") == "hang" for entry in entries)


def _fixed_points(
    suite: Suite, file: ScenarioFile, fixture: Fixture, script: Script
) -> Iterator[Problem]:
    compares = script.prompts if file.compares_log is None else file.compares_log
    logs = fixture.logs if compares and suite.file.log != "none" else []
    normalized = normalize_fixture(
        logs, fixture.transcript, rules=rules_of(suite), overridden=fixture.overridden
    )
    hint = f"run refresh for {fixture.directory.name}: it rewrites the file, and says what differs"
    for log, done in zip(logs, normalized.logs, strict=True):
        path = fixture.directory / log.name
        if not log.header.tokens:
            yield Problem(
                path=path,
                line=1,
                what="the log is literal: it was not written by refresh or record",
                why="It replays and compares, but its ids and times are those of one run.",
                hint=hint,
            )
        else:
            yield from _same(path, log_bytes(done, layout=file.layout), hint)
    if fixture.transcript:
        yield from _same(
            fixture.directory / TRANSCRIPT, transcript_bytes(normalized.transcript), hint
        )


def _same(path: Path, canonical: bytes, hint: str) -> Iterator[Problem]:
    data = path.read_bytes()
    if data == canonical:
        return
    have, want = data.split(b"\n"), canonical.split(b"\n")
    pairs = enumerate(zip(have, want, strict=False), 1)
    line = next((number for number, (a, b) in pairs if a != b), min(len(have), len(want)))
    what = "not what normalizing makes of it"
    if data.replace(b"\r\n", b"\n") == canonical:
        what = "its lines end in CR LF"
    why = "Every committed line is canonical: tokens numbered by first sight, compact JSON, LF."
    yield Problem(path=path, line=line, what=what, why=why, hint=hint)


def _waits(path: Path, file: ScenarioFile, script: Script, *, hangs: bool) -> Iterator[Problem]:
    for number, step in enumerate(script.steps):
        if not isinstance(step, PromptAndCancel) or step.condition is not None:
            continue
        if file.origin == "recorded":
            why = "While recording no call hangs, so the moment of the cancel would be a race."
        elif hangs or step.hanging:
            continue
        else:
            why = "No call hangs here, so the moment of the cancel would be a race."
        yield Problem(
            path=path,
            what=f"steps.{number}: promptAndCancel has nothing to wait for",
            why=why,
            hint='add a "wait", for example {"op": "waitForUpdate", "update": {…}}',
        )
    if hangs and not any(_ends_a_hang(step) for step in script.steps):
        yield Problem(
            path=path,
            what="a model call hangs, and no step cancels or restarts",
            why="The prompt would never be answered.",
            hint="use promptAndCancel or restartAgent, or let the call end",
        )


def _ends_a_hang(step: object) -> bool:
    if isinstance(step, PromptAndCancel | Cancel | RestartAgent):
        return True
    if isinstance(step, Prompt | PromptContent):
        return step.detach
    if isinstance(step, Notify):
        return step.method in _CANCELS
    return isinstance(step, SendRaw) and any(word in step.line for word in _CANCELS)
