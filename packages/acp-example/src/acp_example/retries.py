"""Trying a failed model call again, as far as the provider's policy goes. No I/O."""

from typing import Any

from acp_example.effects import Sleep
from acp_example.llm import Purpose
from acp_example.recorder import Recorder
from acp_example.settings import Settings
from llm_replay.chunks import Failure


class Retries:
    """Counts the attempts of one call. The wait is logged before it begins and after it ended."""

    def __init__(self, out: Recorder, settings: Settings, turn: int) -> None:
        self._out = out
        self._settings = settings
        self._turn = turn
        self._place: dict[str, Any] = {}
        self._count = 0

    def reset(self) -> None:
        """Begin another call."""
        self._count = 0

    def wait(self, failure: Failure, *, step: int, purpose: Purpose) -> bool:
        """Begin to wait for another attempt; False where the policy gives up."""
        policy = self._settings.retry_policy
        delay = self._settings.retry(failure, policy, self._count + 1)
        if delay is None:
            return False
        self._count += 1
        self._place = {
            "retryId": f"{self._turn}.{step}-{purpose}-{self._count}",
            "turn": self._turn,
            "step": step,
        }
        provider = self._settings.provider
        data = {**self._place, "provider": provider, "mode": policy.mode, "policyKey": provider}
        data["retry"] = self._count
        if policy.mode == "normal":
            data["maxRetries"] = policy.max_retries
        self._out.record("llm/retry", {**data, "delayMs": delay, "failure": failure})
        self._out.do(Sleep(0 if policy.instant else delay))
        return True

    def started(self) -> None:
        """Log that the wait is over."""
        self._out.record("llm/retry-started", {**self._place, "retry": self._count})
