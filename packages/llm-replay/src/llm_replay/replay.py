"""Install replay in a runtime, and serve each request its session's next call."""

import os
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from llm_replay.chunks import Chunk
from llm_replay.claims import ClaimFiles, NoClaims
from llm_replay.config import ReplayConfig, ReplayProviderConfig, check_config, with_environment
from llm_replay.cursors import Cursors, Track
from llm_replay.exceptions import ReplayError, ReplayFault, UnclaimedScriptError
from llm_replay.pacing import Pace, pace_of
from llm_replay.rendering import Rendering
from llm_replay.script import SessionScript, load_session_scripts
from llm_replay.seam import ModelInfo, RetryPolicy, Runtime
from llm_replay.stream import ServedCall, failing
from llm_replay.tokens import Roots
from llm_replay.verdict import VerdictWriter


def install_llm_replay(
    runtime: Runtime, config: ReplayConfig, *, environ: Mapping[str, str] | None = None
) -> "ReplayHandle":
    """Replace the models of `runtime` by recorded ones.

    With providers configured, each is registered with its catalogue; without, replay answers
    every request, in front of all adapters. `environ` (default: the process's own) names the
    files that `config` does not, and where the verdict goes; nowhere if it says nothing.

    Raises:
        ConfigError: The configuration says something impossible.
        ReplayError: The fixture can't be replayed.
    """
    environ = os.environ if environ is None else environ
    config = with_environment(check_config(config), environ)
    directory = environ.get("DSH_SNAPSHOT_VERDICT_DIR")
    replay = Replay(
        load_session_scripts(config),
        roots=Roots.from_environment(environ, os.getcwd()),  # noqa: PTH109  a text
        pace=pace_of(config),
        directory=Path(directory) if directory else None,
    )
    with ExitStack() as undo:
        undo.callback(replay.close)
        for provider in config.providers:
            adapter = ReplayAdapter(provider, replay)
            undo.callback(runtime.register_provider(provider.id, adapter))
        if not config.providers:
            undo.callback(runtime.use(replay.stream))
        return ReplayHandle(replay, undo.pop_all())


class ReplayHandle:
    """An installation of replay, until it is disposed of."""

    def __init__(self, replay: "Replay", undo: ExitStack) -> None:
        self._replay = replay
        self._undo = undo

    def dispose(self) -> None:
        """Restore what was there; a second time does nothing."""
        self._undo.close()

    def assert_consumed(self) -> None:
        """Check that all recorded calls were asked for, and no other.

        Raises:
            ReplayFault: What the run asked for and the fixture didn't have, even if the runtime
                caught it then.
            UnclaimedScriptError: Calls are left over.
        """
        self._replay.assert_consumed()


class ReplayAdapter:
    """A provider whose models are recorded."""

    def __init__(self, provider: ReplayProviderConfig, replay: "Replay") -> None:
        self.name: str = provider.name
        self.models: Sequence[ModelInfo] = provider.models
        self.retry_policy: RetryPolicy | None = provider.retry_policy
        self._replay = replay

    def stream(self, request: Any, /) -> AsyncGenerator[Chunk, None]:  # noqa: ANN401  the runtime's own request
        """Answer `request` with its session's next recorded call."""
        return self._replay.stream(request)


class Replay:
    """The recorded models: scripts, who reads them, and what was told about it."""

    def __init__(
        self,
        scripts: Sequence[SessionScript],
        *,
        roots: Roots,
        pace: Pace | None = None,
        directory: Path | None = None,
    ) -> None:
        self._renderings = {script.index: Rendering(script, roots) for script in scripts}
        self._pace = pace
        self._verdict = VerdictWriter(directory)
        self._claims = NoClaims() if directory is None else ClaimFiles(directory)
        tracks = [_track(script) for script in scripts]
        self._cursors = Cursors(tracks, self._claims, self._on_bound)
        self._faults: list[ReplayError] = []
        self._asked: weakref.WeakSet[ServedCall] = weakref.WeakSet()
        in_files = sorted(tracks, key=lambda track: track.index)
        self._verdict.installed([(track.file, track.calls) for track in in_files])

    def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:  # noqa: ANN401  the runtime's own request
        """Take the next call of the request's session; its chunks come when they are read.

        A fault is told at once, and raised when the stream is read.
        """
        session = getattr(request, "session_id", None)
        try:
            cursor = self._cursors.of(session, getattr(request, "lineage", None))
        except ReplayFault as fault:
            return self._fault(fault)
        try:
            call = cursor.advance()
        except ReplayFault as fault:
            return self._fault(fault, cursor.track.index, cursor.call + 1)
        index = cursor.track.index
        self._verdict.call(index, call)
        served = ServedCall(
            cursor=cursor,
            call=call,
            verdict=self._verdict,
            prepare=self._renderings[index].preparation(call - 1, request),
            pause=self._pace and self._pace(index, call - 1),
            on_fault=self._keep,
        )
        return self._watched(served)

    def assert_consumed(self) -> None:
        """Raise the first fault there was, or name what is left over."""
        self.assert_no_fault()
        if leftovers := self._cursors.leftovers():
            raise UnclaimedScriptError(leftovers=leftovers)

    def assert_no_fault(self) -> None:
        """Raise the first fault there was."""
        if self._faults:
            raise self._faults[0]

    def close(self) -> None:
        """Tell what was asked for and never read, and give the scripts back."""
        for served in self._asked:
            if not served.started:
                served.served()
        self._claims.release()

    def _watched(self, served: ServedCall) -> AsyncGenerator[Chunk, None]:
        stream = served.stream()
        self._asked.add(served)
        # A stream that is closed before it was read runs no code of ours: this tells of it.
        weakref.finalize(stream, served.served).atexit = False
        return stream

    def _on_bound(self, track: Track, session: str | None, lineage: str | None) -> None:
        self._verdict.bound(track.index, session, lineage)

    def _keep(self, fault: ReplayError, script: int | None, call: int | None) -> None:
        self._faults.append(fault)
        if isinstance(fault, ReplayFault):
            self._verdict.fault(fault.kind, str(fault), script=script, call=call)

    def _fault(
        self, fault: ReplayFault, script: int | None = None, call: int | None = None
    ) -> AsyncGenerator[Chunk, None]:
        self._keep(fault, script, call)
        return failing(fault)


def _track(script: SessionScript) -> Track:
    file = Path(script.file).name or "replay.override.json"  # which then is the whole script
    return Track(index=script.index, file=file, calls=len(script.entries), lineage=script.lineage)
