"""Opening sessions: new ones, and those that are on disk."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from acp_example import compaction
from acp_example.exceptions import AcpExampleError
from acp_example.host import Host
from acp_example.live import Session
from acp_example.playback import Playback
from acp_example.runner import Client
from acp_example.session import Conversation
from acp_example.store import Found
from llm_replay.exceptions import SessionLogError

_PAGE: Final = 50

Watch = Callable[[str], Client]
"""Say who watches the session of that id."""


class SessionError(AcpExampleError):
    """A session that can't be opened."""


class Sessions:
    """The open sessions of an agent process, by id."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.open: dict[str, Session] = {}

    @property
    def any_images(self) -> bool:
        """Whether some model takes images."""
        adapters = self.host.composition.llm.providers.values()
        return any("image" in model.input_modalities for one in adapters for model in one.models)

    def new(self, cwd: Path, watch: Watch) -> Session:
        """Begin a session in a directory."""
        agent = self.host.composition.agent
        header: dict[str, Any] = {
            "type": "session",
            "version": 1,
            "id": self.host.new_id(),
            "createdAt": self.host.clock.now_ms(),
            "cwd": str(cwd),
            "delegationDepth": 0,
            "lineage": self.host.store.claim(),
        }
        session = Session(
            host=self.host,
            header=header,
            conversation=Conversation(now=self.host.clock.now_ms, new_id=self.host.new_id),
            writer=self.host.store.create(header),
            client=watch(header["id"]),
            mode=agent.permission_mode,
            provider=agent.provider,
            model=agent.model,
            reasoning_effort=agent.reasoning_effort,
        )
        self.open[header["id"]] = session
        return session

    def load(self, session_id: str, cwd: Path, watch: Watch) -> Session:
        """Open a session that is on disk: tell what happened, and repair what a crash left open.

        Raises:
            SessionError: There is none of that id, it is busy, or its log can't be read.
        """
        earlier = self.open.get(session_id)
        if earlier is not None and earlier.busy:
            raise SessionError(f"the session {session_id!r} is running a prompt")
        found = self.host.store.find(session_id)
        if found is None or found.header.get("delegationDepth"):
            raise SessionError(f"there is no session {session_id!r}; session/list names them")
        if earlier is not None:
            earlier.writer.close()
        session = self._reopened(found, cwd, watch)
        told, budget = session.conversation, self.host.composition.agent.compaction.keep_characters
        for event in [*compaction.repair(told, budget), *told.repair()]:
            session.writer.write(event)
        self.open[session_id] = session
        playback = Playback(tool=self.host.composition.tools.get, locate=session.locate)
        for update in playback.updates(session.conversation.events):
            session.client.update(update)
        return session

    def _reopened(self, found: Found, cwd: Path, watch: Watch) -> Session:
        agent = self.host.composition.agent
        try:
            log = self.host.store.read(found)
        except (OSError, ValueError, SessionLogError) as error:
            raise SessionError(f"the session's log can't be read: {error}") from None
        conversation = Conversation(
            now=self.host.clock.now_ms,
            new_id=self.host.new_id,
            events=log.events,
            seed_length=log.header.seed_length,
        )
        chosen = conversation.chosen
        return Session(
            host=self.host,
            header={**found.header, "cwd": str(cwd)},
            conversation=conversation,
            writer=self.host.store.append(found),
            client=watch(log.header.id),
            mode=conversation.mode or agent.permission_mode,
            provider=chosen.get("provider", agent.provider),
            model=chosen.get("model", agent.model),
            reasoning_effort=chosen.get("reasoningEffort", agent.reasoning_effort),
            resumed=conversation.header is not None,
        )

    def listed(self, *, cwd: str | None, cursor: str | None) -> dict[str, Any]:
        """Return a page of the sessions that can be loaded, the latest first.

        Raises:
            SessionError: The cursor is none that was given out.
        """
        if cursor is not None and not cursor.isdecimal():
            raise SessionError(f"{cursor!r} is no cursor of an earlier list")
        top = [log for log in self.host.store.all() if not log.header.get("delegationDepth")]
        wanted = [log for log in top if cwd is None or log.header.get("cwd") == cwd]
        wanted.sort(key=lambda log: -int(log.header["lineage"]))
        start = int(cursor or 0)
        page = wanted[start : start + _PAGE]
        answer: dict[str, Any] = {"sessions": [self._listing(log) for log in page]}
        if len(wanted) > start + _PAGE:
            answer["nextCursor"] = str(start + _PAGE)
        return answer

    def _listing(self, found: Found) -> dict[str, Any]:
        changed = datetime.fromtimestamp(found.path.stat().st_mtime, tz=UTC)
        entry = {
            "sessionId": found.header["id"],
            "cwd": found.header["cwd"],
            "updatedAt": changed.isoformat(timespec="seconds"),
        }
        title = self.host.store.first_words(found)
        return {**entry, "title": title} if title else entry

    async def dispose(self) -> None:
        """Cancel what still runs, wait for its end, and let go of every log and every plugin.

        Raises:
            LogMismatchError: A log was to be verified, and tells something else.
        """
        for session in self.open.values():
            session.cancel("disposed")
        for session in self.open.values():
            await session.idle()
        try:
            while self.open:
                self.open.popitem()[1].close()
        finally:
            self.host.composition.dispose()
