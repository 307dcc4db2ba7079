"""What the rows of one log must be: tokens lie whole, deltas join to their blocks. No I/O."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from llm_replay.derive import DerivedCall, derive_calls
from llm_replay.session_log import SessionLog
from llm_replay.tokens import check_tokens, check_value
from snapshot_harness.blocks import mismatches
from snapshot_harness.exceptions import Problem
from snapshot_harness.model_rows import PLACEHOLDER, is_summary, served_by_override
from snapshot_harness.values import fingerprint

_UNKNOWN_TOOL = ("UNKNOWN_TOOL", "TOOL_NOT_FOUND")
"""The first is a mistake anywhere; an author may write a call that finds no tool."""


def row_problems(  # noqa: PLR0913  facts, all by keyword
    path: Path,
    log: SessionLog,
    *,
    overridden: Collection[int],
    primary: bool,
    malformed: bool,
    authored: bool,
) -> Iterator[Problem]:
    """Yield what is wrong with the events of a log, each with its line."""
    output = served_by_override(log, overridden, primary=primary)
    for call in derive_calls(log.events):
        if log.header.tokens and not output.intersection(call.positions):
            yield from _token_problems(path, log, call)
        if not malformed:
            yield from _block_problems(path, log, call)
    for place, event in enumerate(log.events):
        if log.header.tokens and place not in output and is_summary(event):
            for what in check_value(event["data"]["rawOutput"]):
                yield _broken(path, log.lines[place], what)
        if not malformed and _error_code(event) in _UNKNOWN_TOOL[: 1 if authored else 2]:
            yield Problem(
                path=path,
                line=log.lines[place],
                what="the result of a tool that the agent doesn't have",
                why="The scenario tests a mistake of its own making.",
                hint="use the tools that the agent has, or say `malformed = true`",
            )


def _token_problems(path: Path, log: SessionLog, call: DerivedCall) -> Iterator[Problem]:
    chunks = [log.events[place]["data"]["chunk"] for place in call.positions]
    for place, what in check_tokens(chunks):
        line = log.lines[call.positions[place]]
        if PLACEHOLDER in fingerprint(chunks[place]):
            yield Problem(
                path=path,
                line=line,
                what="a {{fromRequest:…}} in a log with `tokens: 1`",
                why="There it is text that the model said, and would be served as it stands.",
                hint="put the entry into replay.override.json, where placeholders are live",
            )
        else:
            yield _broken(path, line, what)


def _broken(path: Path, line: int, what: str) -> Problem:
    return Problem(
        path=path,
        line=line,
        what=what,
        why="With `tokens: 1` every `{{` of a model row begins a served token, whole in one delta.",
        hint="write `{{lit}}` for two braces that the model said, and keep a token in one delta",
    )


def _block_problems(path: Path, log: SessionLog, call: DerivedCall) -> Iterator[Problem]:
    for one in mismatches(log, call):
        yield Problem(
            path=path,
            line=log.lines[one.place],
            what=one.what,
            why="The stream and its end would tell the agent different things, from this row on.",
            hint="correct the one that was edited, or say `malformed = true`",
        )


def _error_code(event: dict[str, Any]) -> object:
    """Return the code of a tool's failure."""
    data = event.get("data")
    error = data.get("error") if isinstance(data, dict) else None
    if event.get("type") != "tool/result" or not isinstance(error, dict):
        return None
    return error.get("code")
