"""What the wait operations wait for, and what they say there was instead. No I/O."""

from collections.abc import Callable, Sequence
from typing import Any

from snapshot_harness import conditions
from snapshot_harness.driver import Driver
from snapshot_harness.json_value import as_text
from snapshot_harness.permissions import as_name, as_object
from snapshot_harness.plan import Moves, RefusedError, Session, Until

Event = dict[str, Any]


def wait_for(step: conditions.Wait, driver: Driver, session: Session | None) -> Moves:
    """Wait for the fact that `step` names.

    Raises:
        RefusedError: It needs a session and there is none, or it can't be waited for.
    """
    if isinstance(step, conditions.WaitForFile):
        yield _file_wait(step, driver)
    elif session is None:
        raise RefusedError("it comes before newSession", "make a session first")
    elif isinstance(step, conditions.WaitForUpdate):
        yield _frame_wait(step, driver, session)
    else:
        check, what = _log_wait(step, driver, session)
        yield Until(check, what, lambda: _seen_events(driver, session), _seconds(step), polls=True)


def hang_waits(driver: Driver, step: conditions.Interrupting, *, before: int | None) -> Moves:
    """Wait until the calls in flight hang, where replay says that they do."""
    world = driver.world
    if world.live or before is None:
        return
    wanted = step.hanging
    if wanted is None:
        wanted = 1 if step.condition is None or world.hangs_now() else 0
    if wanted:
        yield Until(
            lambda: (world.hanging() or 0) >= before + wanted,
            f"{wanted} calls to hang" if wanted > 1 else "a call to hang",
            lambda: f"{(world.hanging() or 0) - before} did",
            polls=True,
        )


def matches(value: object, pattern: object) -> bool:
    """Tell whether `value` holds what `pattern` names: objects by the keys named."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            key in value and matches(value[key], wanted) for key, wanted in pattern.items()
        )
    if isinstance(pattern, list):
        return (
            isinstance(value, list)
            and len(value) == len(pattern)
            and all(matches(*pair) for pair in zip(value, pattern, strict=True))
        )
    return type(value) is type(pattern) and value == pattern


def _seconds(step: conditions.Wait) -> float:
    return step.timeout_ms / 1000


def _file_wait(step: conditions.WaitForFile, driver: Driver) -> Until:
    return Until(
        lambda: driver.world.has_file(step.path),
        f"the file {step.path!r}",
        lambda: f"the cwd holds {', '.join(driver.world.files()) or 'nothing'}",
        _seconds(step),
        polls=True,
    )


def _frame_wait(step: conditions.WaitForUpdate, driver: Driver, session: Session) -> Until:
    if step.frame:
        return Until(
            lambda: any(matches(one, step.frame) for one in driver.transcript[session.since :]),
            f"a frame that holds {as_text(step.frame)}",
            lambda: f"{len(driver.transcript) - session.since} came since the prompt",
            _seconds(step),
        )
    return Until(
        lambda: any(matches(update, step.update) for update in session.updates),
        f"an update that holds {as_text(step.update)}",
        lambda: _seen_updates(session),
        _seconds(step),
    )


def _log_wait(
    step: conditions.Wait, driver: Driver, session: Session
) -> tuple[Callable[[], bool], str]:
    world = driver.world
    if isinstance(step, conditions.WaitForTurnStart):
        minimum = step.minimum_turn
        what = f"an open turn, at least number {minimum}"
        return lambda: _open_turn(world.events(session.id)) >= minimum, what
    if isinstance(step, conditions.WaitForTurnEnd):
        return lambda: _is_closed(world.events(session.id)), "the end of a turn"
    if isinstance(step, conditions.WaitForSubagentTurnEnd):
        what = f"child {step.child} to close turn {step.minimum_turn}"
        return lambda: _child_is_done(world.children(session.id), step), what
    assert isinstance(step, conditions.WaitForEvent)  # noqa: S101  the last of the waits
    event = step
    what = f"an event {step.type!r}" + (f" with {as_text(step.where)}" if step.where else "")
    return lambda: _has_event(driver, session, event), what


def _boundaries(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.get("type") in ("turn/start", "turn/end")]


def _turn(event: Event) -> int:
    turn = as_object(event.get("data")).get("turn")
    if type(turn) is not int or turn < 1:
        raise RefusedError(f"the log has a {event['type']} with the turn {turn!r}")
    return turn


def _open_turn(events: Sequence[Event]) -> int:
    boundaries = _boundaries(events)
    if not boundaries or boundaries[-1]["type"] != "turn/start":
        return 0
    return _turn(boundaries[-1])


def _is_closed(events: Sequence[Event]) -> bool:
    boundaries = _boundaries(events)
    return bool(boundaries) and boundaries[-1]["type"] == "turn/end"


def _child_is_done(
    children: Sequence[Sequence[Event]], step: conditions.WaitForSubagentTurnEnd
) -> bool:
    if len(children) < step.child:
        return False
    events = children[step.child - 1]
    return _is_closed(events) and _turn(_boundaries(events)[-1]) >= step.minimum_turn


def _has_event(driver: Driver, session: Session, step: conditions.WaitForEvent) -> bool:
    events = driver.world.events(session.id)
    if session.prompt is not None:
        _refuse_later_call(events, step)
    start = 0
    if step.after is not None:
        places = [at for at, event in enumerate(events) if event.get("type") == step.after]
        if not places:
            return False
        start = places[-1] + 1
    return any(
        event.get("type") == step.type and matches(event.get("data"), step.where)
        for event in events[start:]
    )


def _refuse_later_call(events: Sequence[Event], step: conditions.WaitForEvent) -> None:
    """Refuse to wait for what a log holds back until the calls before are done."""
    if step.type == "tool/call":
        return
    named = set(_strings(step.where))
    first: dict[str, str | None] = {}
    for event in events:
        if event.get("type") != "tool/call":
            continue
        data = as_object(event.get("data"))
        batch = repr((data.get("turn"), data.get("step")))
        call = as_name(data.get("callId"))
        if first.setdefault(batch, call) != call and call in named:
            raise RefusedError(
                f"{call!r} is a later call of its batch: its events stand in the log only when "
                "the calls before it are done",
                "wait for its frame with waitForUpdate",
            )


def _strings(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []


def _seen_updates(session: Session) -> str:
    kinds = [str(update.get("sessionUpdate")) for update in session.updates[-10:]]
    last = ", ".join(kinds) or "none"
    return f"{len(session.updates)} came since the prompt, the last of them {last}"


def _seen_events(driver: Driver, session: Session) -> str:
    events = driver.world.events(session.id)
    kinds = [str(event.get("type")) for event in events[-10:]]
    return f"the log holds {len(events)} events, the last of them {', '.join(kinds) or 'none'}"
