"""Whether a failed model call is tried again, and after how long. No I/O."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from llm_replay.chunks import Failure
from llm_replay.seam import RetryPolicy

_TRANSIENT: Final = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT}


def is_transient(failure: Failure, policy: RetryPolicy) -> bool:
    """Say whether the same request may well succeed later.

    The code decides. Statuses that have no code of their own but ask for another try (408 and
    409) count as well.
    """
    code = failure["code"]
    status = failure.get("status")
    return code in policy.codes or (status in _TRANSIENT and code == f"HTTP_{status}")


def retry_delay_ms(
    failure: Failure, policy: RetryPolicy, *, retry: int, random: Callable[[], float]
) -> int | None:
    """Return how long to wait before the `retry`-th further attempt (from 1); None gives up.

    A delay that the provider asked for is taken as it is, and above the cap there is no retry:
    to come back sooner than asked would only fail again. `random` returns numbers in [0, 1).
    """
    if not is_transient(failure, policy):
        return None
    if policy.mode == "normal" and retry > policy.max_retries:
        return None
    asked = failure.get("providerRetryAfterMs")
    if asked is not None:
        return asked if asked <= policy.max_delay_ms else None
    spread = 1 + policy.jitter_ratio * (2 * random() - 1)
    return min(policy.max_delay_ms, round(_doubled(policy, retry) * spread))


def _doubled(policy: RetryPolicy, retry: int) -> float:
    try:
        grown = policy.initial_delay_ms * policy.multiplier ** (retry - 1)
    except OverflowError:
        return policy.max_delay_ms
    return min(policy.max_delay_ms, grown)
