"""What each operation of input.json does, move by move. No I/O."""

import re
from collections.abc import Callable, Generator
from functools import singledispatch
from typing import Any

from snapshot_harness import conditions, steps
from snapshot_harness.answers import refusal, success, turn_end
from snapshot_harness.driver import Driver
from snapshot_harness.json_value import as_text
from snapshot_harness.plan import Move, Moves, RefusedError, Session
from snapshot_harness.waits import hang_waits, wait_for

_ACP = "let it answer as ACP says: with an object that has a sessionId"
_COUNTED = "sessions are counted from 1, in the order in which the script makes them"
_TOKEN = re.compile(r"\{\{(?:session:(\d+)|([a-z]+))\}\}")


@singledispatch
def moves_of(step: conditions.Step, driver: Driver) -> Moves:
    """Yield the moves of one step; what has none of its own is a wait."""
    assert isinstance(step, conditions.Wait)  # noqa: S101  all others are registered
    yield from wait_for(step, driver, _session_if_any(driver, step))


def play(script: steps.Script, driver: Driver) -> Moves:
    """Yield the moves of a whole script.

    Raises:
        RefusedError: The agent did not do what a step expects.
    """
    for index, step in enumerate(script.steps):
        driver.begin(f"step {index} ({step.op})")
        yield from moves_of(step, driver)
        _refuse_mistakes(driver.desk.mistakes)
    driver.begin("after the last step")
    for session in driver.sessions:
        if session.prompt is not None:
            yield from turn_end(driver, session.prompt)
    _refuse_mistakes([*driver.desk.mistakes, *driver.desk.left_over()])


@moves_of.register
def _(step: steps.Initialize, driver: Driver) -> Moves:
    fs = "fs" in driver.capabilities
    capabilities: dict[str, Any] = {
        "fs": {"readTextFile": fs, "writeTextFile": fs},
        "terminal": "terminal" in driver.capabilities,
    }
    if step.terminal_output:
        capabilities["_meta"] = {"terminal_output": True}
    yield from driver.ask("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
    yield from success(driver, "initialize")


@moves_of.register
def _(step: steps.MakingSession, driver: Driver) -> Moves:
    params: dict[str, Any] = {
        "cwd": _below_cwd(driver, step.cwd),
        "mcpServers": fill(driver, step.mcp_servers),
    }
    if step.additional_directories:
        params["additionalDirectories"] = [
            _below_cwd(driver, path) for path in step.additional_directories
        ]
    yield from driver.ask("session/new", params)
    if isinstance(step, steps.NewSessionExpectError):
        yield from refusal(driver, "session/new")
        return
    yield from success(driver, "session/new")
    result = driver.responses[driver.asked].get("result")
    made = result.get("sessionId") if isinstance(result, dict) else None
    if not isinstance(made, str):
        raise RefusedError(
            f"the agent answered session/new without a sessionId: {as_text(result)}", _ACP
        )
    # Updates may come between the answer and the next step: they belong to the session.
    driver.sessions.append(Session(made, _earlier_updates(driver, made)))


@moves_of.register
def _(step: steps.LoadSession, driver: Driver) -> Moves:
    session = session_of(driver, step)
    session.updates.clear()
    params = {"sessionId": session.id, "cwd": driver.world.roots["cwd"], "mcpServers": []}
    yield from driver.ask("session/load", params)
    if step.expect_error:
        yield from refusal(driver, "session/load")
    else:
        yield from success(driver, "session/load")


@moves_of.register
def _(step: steps.Prompt, driver: Driver) -> Moves:
    session = session_of(driver, step)
    prompt = yield from _prompt(driver, session, _text(step.text))
    if not step.detach:
        yield from turn_end(driver, prompt)


@moves_of.register
def _(step: steps.PromptContent, driver: Driver) -> Moves:
    session = session_of(driver, step)
    prompt = yield from _prompt(driver, session, step.content)
    if not step.detach:
        yield from turn_end(driver, prompt)


@moves_of.register
def _(step: steps.PromptExpectError, driver: Driver) -> Moves:
    yield from _prompt(driver, session_of(driver, step), _text(step.text))
    yield from refusal(driver, "session/prompt")


@moves_of.register
def _(step: steps.PromptAndCancel, driver: Driver) -> Moves:
    session = session_of(driver, step)
    prompt = yield from _prompt(driver, session, _text(step.text))
    if step.condition is None and (driver.world.live or session.hung is None):
        raise RefusedError(
            "nothing says when to cancel: no call hangs on purpose here",
            "give it a condition: `wait` takes any wait operation",
        )
    yield from _condition(step, driver)
    yield from hang_waits(driver, step, before=session.hung)
    yield from driver.cancel(session)
    yield from turn_end(driver, prompt)


@moves_of.register
def _(step: steps.Cancel, driver: Driver) -> Moves:
    session = session_of(driver, step)
    yield from _condition(step, driver)
    prompt = session.prompt
    if prompt is not None:
        yield from hang_waits(driver, step, before=session.hung)
    yield from driver.cancel(session)
    if prompt is not None:
        yield from turn_end(driver, prompt)


@moves_of.register
def _(step: steps.PromptAndWaitForAgentMessage, driver: Driver) -> Moves:
    session = session_of(driver, step)
    prompt = yield from _prompt(driver, session, _text(step.text))
    yield from turn_end(driver, prompt)
    content = {"type": "text", "text": step.wait_for_text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    wait = conditions.WaitForUpdate(update=update, timeoutMs=step.timeout_ms, session=step.session)
    yield from wait_for(wait, driver, session)


@moves_of.register
def _(step: steps.RestartAgent, driver: Driver) -> Moves:
    yield from _condition(step, driver)
    for session in driver.sessions:
        if session.prompt is not None:
            yield from hang_waits(driver, step, before=session.hung)
    yield from driver.restart(kill=step.kill)


@moves_of.register
def _(step: steps.Request, driver: Driver) -> Moves:
    yield from driver.ask(step.method, fill(driver, step.params))
    if step.expect_error is False:
        yield from success(driver, step.method)
        return
    yield from refusal(driver, step.method)
    code = driver.responses[driver.asked]["error"].get("code")
    if not isinstance(step.expect_error, bool) and code != step.expect_error:
        raise RefusedError(
            f"{step.method} was answered with error {code}, expected {step.expect_error}",
            "expect that code, if it is meant",
        )


@moves_of.register
def _(step: steps.Notify, driver: Driver) -> Moves:
    frame = {"jsonrpc": "2.0", "method": step.method}
    params = fill(driver, step.params)
    yield from driver.send(frame if params is None else {**frame, "params": params})


@moves_of.register
def _(step: steps.SendRaw, driver: Driver) -> Moves:
    yield from driver.send_bytes(step.line.encode("utf-8", "surrogatepass") + b"\n")


def session_of(driver: Driver, step: conditions.SessionStep) -> Session:
    """Return the session that a step means.

    Raises:
        RefusedError: There is none.
    """
    session = _session_if_any(driver, step)
    if session is None:
        raise RefusedError("it comes before newSession", "make a session first")
    return session


def fill(driver: Driver, value: Any) -> Any:  # noqa: ANN401  JSON
    """Return a JSON value with the run's roots and live session ids in its strings."""
    if isinstance(value, str):
        return _TOKEN.sub(_live(driver), value)
    if isinstance(value, list):
        return [fill(driver, item) for item in value]
    if isinstance(value, dict):
        return {key: fill(driver, item) for key, item in value.items()}
    return value


def _live(driver: Driver) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return driver.world.roots.get(match[2], match[0])
        number = int(match[1])
        if not 1 <= number <= len(driver.sessions):
            raise RefusedError(
                f"there is no session {number}; {len(driver.sessions)} were made", _COUNTED
            )
        return driver.sessions[number - 1].id

    return replace


def _session_if_any(driver: Driver, step: conditions.SessionStep) -> Session | None:
    made = len(driver.sessions)
    number = made if step.session is None else step.session
    if number > made:
        raise RefusedError(f"there is no session {number}; {made} were made", _COUNTED)
    return driver.sessions[number - 1] if number else None


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _below_cwd(driver: Driver, path: str | None) -> str:
    cwd = driver.world.roots["cwd"]
    if path is None:
        return cwd
    filled: str = fill(driver, path)
    return filled if filled.startswith("/") else f"{cwd}/{filled}"


def _prompt(
    driver: Driver, session: Session, content: list[dict[str, Any]]
) -> Generator[Move, None, int]:
    """Send a prompt, and return its request's id."""
    session.updates.clear()
    session.since = len(driver.transcript)
    session.hung = driver.world.hanging()
    params = {"sessionId": session.id, "prompt": fill(driver, content)}
    session.prompt = driver.asked + 1
    yield from driver.ask("session/prompt", params)
    return driver.asked


def _condition(step: conditions.Conditional, driver: Driver) -> Moves:
    condition = step.condition
    if condition is not None:
        chosen = condition if condition.session is not None else step
        session = _session_if_any(driver, chosen)
        yield from wait_for(condition, driver, session)


def _refuse_mistakes(mistakes: list[str]) -> None:
    if mistakes:
        raise RefusedError("; ".join(mistakes), "correct permissionAnswers in input.json")


def _earlier_updates(driver: Driver, session: str) -> list[dict[str, Any]]:
    return [
        frame["params"]["update"]
        for frame in driver.transcript
        if frame.get("method") == "session/update"
        and isinstance(frame.get("params"), dict)
        and frame["params"].get("sessionId") == session
        and isinstance(frame["params"].get("update"), dict)
    ]
