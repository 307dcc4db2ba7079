"""What replay says it served, folded to what is wrong with it. No I/O."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from llm_replay.script import SessionScript
from llm_replay.verdict import VerdictFile

Where: TypeAlias = Callable[[SessionScript, int | None], str]

_INSTALL = (
    "  hint: install replay where DSH_SNAPSHOT says so; an agent that tells no verdict says "
    '`verdict = "optional"` in suite.toml'
)
_RECORD = "  hint: record again, if this is what the run should ask for"
_REMOVE = "  hint: record again, or remove the rows of the calls that nobody asks for"
_CLAIM = "  hint: let the agent's processes share the claims beside the verdict, as llm_replay does"
_READ = "  hint: let the agent read each answer to its end, or cancel the turn in input.json"


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


def name_of(script: SessionScript, call: int | None = None) -> str:  # noqa: ARG001  others need it
    """Return the file that holds a script."""
    return script.file.rpartition("/")[2] or f"script {script.index}"


def judge(
    told: Told, scripts: Sequence[SessionScript], *, required: bool, where: Where = name_of
) -> list[str]:
    """Return what is wrong with a run: faults first, as the others may follow from them.

    `where` returns the place of a script, or of one of its calls.
    """
    if not told.installed:
        calls = sum(len(script.entries) for script in scripts)
        if not required or not calls:
            return []
        return [f"replay was never installed, and the fixture has {_calls(calls)}\n{_INSTALL}"]
    return [
        *told.faults,
        *_left_over(told, scripts, where),
        *_twice(told, scripts, where),
        *_cut(told, scripts, where),
    ]


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
        text = f"replay fault {fact.get('kind')!r}: {fact.get('message')}"
        told.faults.append(text if "\n  hint: " in text else f"{text}\n{_RECORD}")
    elif kind == "bound" and type(script) is int:
        told.bound.add(script)
    elif type(script) is int and type(call) is int:
        if kind == "call":
            told.bound.add(script)
            told.calls[script, call] += 1
            told.last[script] = call
        elif kind == "served":
            told.served.add((script, call))
        elif kind == "hanging":
            told.hanging.append((script, call))


def _left_over(told: Told, scripts: Sequence[SessionScript], where: Where) -> Iterator[str]:
    for script in scripts:
        calls = len(script.entries)
        if not calls:
            continue
        if script.index not in told.bound:
            what = f"no session took this script, which has {_calls(calls)}"
            yield f"{where(script, None)}: {what}\n{_RECORD}"
            continue
        left = [n for n in range(1, calls + 1) if (script.index, n) not in told.calls]
        if left:
            yield (
                f"{where(script, left[0])}: {_calls(len(left))} of {calls} never asked for, "
                f"the first of them number {left[0]}\n{_REMOVE}"
            )


def _twice(told: Told, scripts: Sequence[SessionScript], where: Where) -> Iterator[str]:
    for (script, call), count in sorted(told.calls.items()):
        if count > 1:
            place = _place(scripts, script, call, where)
            yield f"{place}: model call {call} was served {count} times\n{_CLAIM}"


def _cut(told: Told, scripts: Sequence[SessionScript], where: Where) -> Iterator[str]:
    ended = told.served | set(told.hanging)
    for script, call in sorted(told.calls):
        if (script, call) not in ended:
            place = _place(scripts, script, call, where)
            yield f"{place}: model call {call} was cut before its end\n{_READ}"


def _place(scripts: Sequence[SessionScript], index: int, call: int, where: Where) -> str:
    found = next((script for script in scripts if script.index == index), None)
    return f"script {index}" if found is None else where(found, call)


def _calls(count: int) -> str:
    return "1 model call" if count == 1 else f"{count} model calls"
