"""What replay says it served, folded to what is wrong with it. No I/O."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_replay.script import SessionScript
from llm_replay.verdict import VerdictFile


@dataclass(frozen=True, slots=True)
class Told:
    """The facts of all files together, calls as (script, call)."""

    installed: bool
    faults: list[str] = field(default_factory=list)
    bound: set[int] = field(default_factory=set)
    calls: Counter[tuple[int, int]] = field(default_factory=Counter)
    served: set[tuple[int, int]] = field(default_factory=set)
    hanging: list[tuple[int, int]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)


def fold(files: Sequence[VerdictFile]) -> Told:
    """Put the facts of all installations together."""
    told = Told(installed=bool(files))
    for file in files:
        for fact in file.facts:
            _take(told, fact)
    return told


def judge(told: Told, scripts: Sequence[SessionScript], *, required: bool) -> list[str]:
    """Return what is wrong with a run: faults first, as the others may follow from them."""
    if not told.installed:
        calls = sum(len(script.entries) for script in scripts)
        if not required or not calls:
            return []
        return [f"replay was never installed, and the fixture has {calls} model calls"]
    return [*told.faults, *_left_over(told, scripts), *_twice(told, scripts), *_cut(told, scripts)]


def hangs_now(told: Told, scripts: Sequence[SessionScript]) -> bool:
    """Tell whether the last call of some script is one that hangs."""
    entries = {script.index: script.entries for script in scripts}
    return any(
        script in entries
        and 1 <= call <= len(entries[script])
        and entries[script][call - 1].get("kind") == "hang"
        for script, call in told.last.items()
    )


def _take(told: Told, fact: dict[str, Any]) -> None:
    kind, script = fact.get("fact"), fact.get("script")
    call = fact.get("call")
    if kind == "fault":
        told.faults.append(f"replay fault {fact.get('kind')!r}: {fact.get('message')}")
        return
    if type(script) is not int:
        return
    if kind == "bound":
        told.bound.add(script)
    elif type(call) is int:
        if kind == "call":
            told.bound.add(script)
            told.calls[script, call] += 1
            told.last[script] = call
        elif kind == "served":
            told.served.add((script, call))
        elif kind == "hanging":
            told.hanging.append((script, call))


def _left_over(told: Told, scripts: Sequence[SessionScript]) -> Iterator[str]:
    for script in scripts:
        calls = len(script.entries)
        if not calls:
            continue
        if script.index not in told.bound:
            yield f"{_file(script)}: no session took this script, which has {_calls(calls)}"
            continue
        left = [n for n in range(1, calls + 1) if (script.index, n) not in told.calls]
        if left:
            yield (
                f"{_file(script)}: {_calls(len(left))} of {calls} never asked for, "
                f"the first of them number {left[0]}"
            )


def _twice(told: Told, scripts: Sequence[SessionScript]) -> Iterator[str]:
    for (script, call), count in sorted(told.calls.items()):
        if count > 1:
            yield f"{_name(scripts, script)}: model call {call} was served {count} times"


def _cut(told: Told, scripts: Sequence[SessionScript]) -> Iterator[str]:
    ended = told.served | set(told.hanging)
    for script, call in sorted(told.calls):
        if (script, call) not in ended:
            yield f"{_name(scripts, script)}: model call {call} was cut before its end"


def _name(scripts: Sequence[SessionScript], index: int) -> str:
    return next((_file(script) for script in scripts if script.index == index), f"script {index}")


def _file(script: SessionScript) -> str:
    return script.file.rpartition("/")[2] or f"script {script.index}"


def _calls(count: int) -> str:
    return "1 model call" if count == 1 else f"{count} model calls"
