"""Who reads which script, and how far. No I/O: claims are asked for through a protocol."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llm_replay.claims import Claims
from llm_replay.exceptions import ReplayExhaustedError, TwoStreamsError, UnknownSessionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One script as cursors see it: `index` is its place among the files, from 0."""

    index: int
    file: str
    calls: int
    lineage: str | None = None


@dataclass(slots=True)
class Cursor:
    """How far one live session has come in its script, and whether it is reading just now.

    `call` is the number of the last call that was asked for, from 1.
    """

    track: Track
    call: int
    open: bool = False

    def advance(self) -> int:
        """Move to the next call and return its number.

        Raises:
            ReplayExhaustedError: No call is left. The cursor stays where it is.
        """
        if self.call >= self.track.calls:
            raise ReplayExhaustedError(file=self.track.file, calls=self.track.calls)
        self.call += 1
        return self.call

    @contextmanager
    def reading(self, call: int) -> Iterator[None]:
        """Read the stream of a call, and no other at the same time.

        Raises:
            TwoStreamsError: The session is reading another one.
        """
        if self.open:
            raise TwoStreamsError(file=self.track.file, call=call)
        self.open = True
        try:
            yield
        finally:
            self.open = False


class Cursors:
    """Serve recorded calls to live sessions, each at its own pace.

    Live session ids are fresh on every run, so they never equal the recorded ones. A session
    binds with its first call: to the script of its lineage where both sides have lineages, else
    to the next one in order that nobody claimed.
    """

    def __init__(
        self,
        tracks: Iterable[Track],
        claims: Claims,
        on_bound: Callable[[Track, str | None, str | None], None],
    ) -> None:
        self._tracks = tuple(tracks)
        self._claims = claims
        self._on_bound = on_bound
        self._bound: dict[str | None, Cursor] = {}
        self._by_lineage = False

    def of(self, session: str | None, lineage: str | None) -> Cursor:
        """Return the cursor of a live session, bound at its first call.

        Raises:
            UnknownSessionError: No script is left for this session.
        """
        if session not in self._bound:
            self._bound[session] = self._bind(session, lineage)
        return self._bound[session]

    def leftovers(self) -> list[tuple[str, int, int]]:
        """Return file, calls asked for and calls recorded of each script that isn't used up."""
        reached = {cursor.track.index: cursor.call for cursor in self._bound.values()}
        return [
            (track.file, reached.get(track.index, 0), track.calls)
            for track in self._tracks
            if reached.get(track.index, 0) < track.calls
        ]

    def _bind(self, session: str | None, lineage: str | None) -> Cursor:
        for track in self._candidates(session, lineage):
            call = self._claims.take(track.index, session)
            if call is not None:
                self._by_lineage |= lineage is not None
                self._on_bound(track, session, lineage)
                return Cursor(track, call)
        raise UnknownSessionError(session=session, lineage=lineage, recorded=len(self._tracks))

    def _candidates(self, session: str | None, lineage: str | None) -> Sequence[Track]:
        used = {cursor.track.index for cursor in self._bound.values()}
        free = [track for track in self._tracks if track.index not in used]
        earlier = self._claims.script_of(session)
        if earlier is not None:
            return [track for track in free if track.index == earlier]
        if lineage is not None and any(track.lineage is not None for track in self._tracks):
            return [track for track in free if track.lineage == lineage]
        if session is None:
            return [track for track in free if track.index == 0]
        in_order = [track for track in free if track.calls]
        if self._by_lineage:  # here sessions do have lineages: one without has a script without
            in_order.sort(key=lambda track: track.lineage is not None)
        return in_order
