"""What the agent's answers to the client must be, and waiting for them. No I/O."""

from typing import Any

from snapshot_harness.driver import Driver
from snapshot_harness.json_value import as_text
from snapshot_harness.plan import Moves, RefusedError, Until

_EXPECTING = {"session/prompt": "promptExpectError", "session/new": "newSessionExpectError"}


def is_turn_end(driver: Driver, prompt: int) -> bool:
    """Tell whether a prompt's turn is over: in ACP v1, when its request is answered."""
    return prompt in driver.responses


def turn_end(driver: Driver, prompt: int) -> Moves:
    """Wait for the end of a prompt's turn, which may be no error."""
    yield Until(
        lambda: is_turn_end(driver, prompt),
        "the end of the turn",
        lambda: _last_frames(driver),
    )
    _refuse_error(driver.responses[prompt], "session/prompt")


def success(driver: Driver, method: str) -> Moves:
    """Wait for the answer to the last request, which may be no error."""
    asked = driver.asked
    yield from _answered(driver, method)
    _refuse_error(driver.responses[asked], method)


def refusal(driver: Driver, method: str) -> Moves:
    """Wait for the answer to the last request, which must be an error."""
    asked = driver.asked
    yield from _answered(driver, method)
    response = driver.responses[asked]
    if not isinstance(response.get("error"), dict):
        raise RefusedError(
            f"{method} succeeded, and an error was expected: {as_text(response.get('result'))}",
            "expect that it succeeds, if that is meant",
        )


def _answered(driver: Driver, method: str) -> Moves:
    asked = driver.asked
    yield Until(
        lambda: asked in driver.responses,
        f"the answer to {method}",
        lambda: _last_frames(driver),
    )


def _refuse_error(response: dict[str, Any], method: str) -> None:
    if "error" in response:
        raise RefusedError(
            f"{method} was answered with an error: {as_text(response['error'])}",
            f"if that is meant, expect it with {_EXPECTING.get(method, '`expectError`')}; "
            "if not, see what differed first, and what the agent wrote to stderr",
        )
    if "result" not in response:
        raise RefusedError(
            f"{method} was answered with neither a result nor an error",
            "let the agent answer with one of them",
        )


def _last_frames(driver: Driver) -> str:
    if not driver.transcript:
        return "the agent wrote no frame"
    last = driver.transcript[-1]
    return f"the last of {len(driver.transcript)} frames was {as_text(last, 300)}"
