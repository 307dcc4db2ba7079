"""A model with a hand-written script, for tests inside one process."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

from llm_replay.chunks import Chunk
from llm_replay.exceptions import RequestError
from llm_replay.replay import Replay
from llm_replay.requests import (
    Message,
    RecordedRequest,
    extension_problems,
    pairing_problems,
    snapshot,
)
from llm_replay.rounds import (
    Block,
    Step,
    as_entry,
    call,
    error,
    fail,
    hang,
    raw,
    round_,
    say,
    think,
)
from llm_replay.script import SessionScript
from llm_replay.seam import ModelInfo, RetryPolicy
from llm_replay.stream import failing
from llm_replay.tokens import Roots
from llm_replay.values import same

__all__ = [
    "Block",
    "RecordedRequest",
    "ScriptedModel",
    "Step",
    "call",
    "error",
    "fail",
    "hang",
    "raw",
    "round_",
    "say",
    "scripted",
    "think",
]

Rebuild: TypeAlias = Callable[[RecordedRequest], Sequence[Message]]


def scripted(
    *steps: Step,
    children: Sequence[Sequence[Step]] = (),
    extends: bool = True,
    rebuild: Rebuild | None = None,
) -> "ScriptedModel":
    """Return a model that answers its calls with `steps`, in order.

    The first session that asks takes `steps`, each further one the next list of `children`. A
    request must extend the one before it in its session, but for compactions; a test that
    rewrites the history on purpose says `extends=False`. `rebuild` returns the messages as the
    session log tells them, which must be those of the request.
    """
    scripts = [_script(index, script) for index, script in enumerate([steps, *children])]
    return ScriptedModel(scripts, extends=extends, rebuild=rebuild)


class ScriptedModel:
    """A scripted model: a stream handler, and a provider as well.

    Each request is kept as it was (`requests`) and checked: tool calls and results match, and
    the history only grows. What is wrong is raised in the stream, and by `assert_consumed` once
    more, in case the runtime swallowed it.
    """

    def __init__(
        self,
        scripts: Sequence[SessionScript],
        *,
        extends: bool = True,
        rebuild: Rebuild | None = None,
    ) -> None:
        self.name = "Scripted"
        self.models: Sequence[ModelInfo] = (ModelInfo(id="scripted"),)
        self.retry_policy: RetryPolicy | None = None
        self.requests: list[RecordedRequest] = []
        roots = Roots.from_environment(os.environ, os.getcwd())  # noqa: PTH109  a text
        self._replay = Replay(scripts, roots=roots)
        self._extends = extends
        self._rebuild = rebuild
        self._errors: list[RequestError] = []

    def __call__(self, request: Any, /) -> AsyncGenerator[Chunk, None]:  # noqa: ANN401  the runtime's own request
        """Answer `request` with its session's next step."""
        return self.stream(request)

    def stream(self, request: Any, /) -> AsyncGenerator[Chunk, None]:  # noqa: ANN401  the runtime's own request
        """Answer `request` with its session's next step."""
        recorded = snapshot(request)
        problems = self._problems(recorded)
        self.requests.append(recorded)
        stream = self._replay.stream(request)
        if not problems:
            return stream
        wrong = RequestError(number=len(self.requests), problems=problems)
        self._errors.append(wrong)
        return failing(wrong)

    def assert_consumed(self) -> None:
        """Check that all steps were asked for, and that every request was as it must be.

        Raises:
            RequestError: A request was not as it must be.
            ReplayFault: More calls, or more sessions, than the script has.
            UnclaimedScriptError: Steps are left over.
        """
        self.assert_no_fault()
        self._replay.assert_consumed()

    def assert_no_fault(self) -> None:
        """Check what `assert_consumed` checks, but for steps that are left over.

        Raises:
            RequestError: A request was not as it must be.
            ReplayFault: More calls, or more sessions, than the script has.
        """
        if self._errors:
            raise self._errors[0]
        self._replay.assert_no_fault()

    def _problems(self, request: RecordedRequest) -> list[str]:
        problems = pairing_problems(request.messages)
        if self._extends and (earlier := self._earlier(request)):
            problems += extension_problems(earlier.messages, request.messages)
        if self._rebuild and not same(list(self._rebuild(request)), request.messages):
            problems.append("messages: can't be rebuilt from the session log")
        return problems

    def _earlier(self, request: RecordedRequest) -> RecordedRequest | None:
        """Return the request that this one must extend: the one before it for the same purpose.

        A compaction between them rewrites the history; requests that are not a turn's, such as
        one for a title, have messages of their own.
        """
        if request.purpose not in {None, "turn"}:
            return None
        for other in reversed(self.requests):
            if other.session_id == request.session_id:
                if other.purpose == "compaction":
                    return None
                if other.purpose == request.purpose:
                    return other
        return None


def _script(index: int, steps: Sequence[Step]) -> SessionScript:
    entries = [as_entry(step) for step in steps]
    return SessionScript(
        recorded_id="",
        created_at=index,
        entries=entries,
        primary=index == 0,
        index=index,
        file=f"script {index}" if index else "script",
        overridden=frozenset(range(len(entries))),
    )
