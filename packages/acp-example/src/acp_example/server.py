"""ACP on one side, sessions on the other: the only file that knows the official SDK."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import acp
from acp.agent.connection import AgentSideConnection
from acp.schema import RequestPermissionRequest, SessionNotification

from acp_example.content import PromptError, message_content
from acp_example.effects import Outcome
from acp_example.live import Session
from acp_example.options import OptionError, config_options, mode_state, set_mode, set_option
from acp_example.permissions import OPTIONS, Answer
from acp_example.sessions import SessionError, Sessions
from acp_example.stdio import REQUESTED, StdioTransport

_LOG: Final = logging.getLogger(__name__)
Send = Callable[[dict[str, Any]], Awaitable[None]]
Stop = Callable[[], None]
_ANSWERS: Final = {option["optionId"]: cast("Answer", option["kind"]) for option in OPTIONS}


class Watcher:
    """One session's client. Frames leave in the order in which they were asked for.

    Each frame is a task of its own, and tasks begin in the order of their creation; a frame
    enters the transport's queue before its task first waits.
    """

    def __init__(self, connection: AgentSideConnection, session_id: str, send: Send) -> None:
        self._connection = connection
        self._session_id = session_id
        self._transmit = send
        self._pending: set[asyncio.Task[None]] = set()
        self._open: list[list[object]] = []

    def update(self, update: Mapping[str, Any]) -> None:
        """Send an update."""
        self._begin(self._send(update))

    async def flush(self) -> None:
        """Wait until all updates so far are written."""
        if self._pending:
            await asyncio.wait(set(self._pending))

    async def ask(self, request: Mapping[str, Any]) -> Answer:
        """Send a permission request and return what the user chose.

        Cancelled, it withdraws the request: a client would show it for ever.
        """
        ids: list[object] = []
        REQUESTED.set(ids)
        self._open.append(ids)
        try:
            return await self._answer(request)
        except asyncio.CancelledError:
            for request_id in ids:
                self._begin(self._withdraw(request_id, request["toolCall"]["toolCallId"]))
            raise
        finally:
            self._open.remove(ids)

    def taken_back(self) -> None:
        """Take note that the client, which cancels, answers what is asked by itself."""
        for ids in self._open:
            ids.clear()

    async def _answer(self, request: Mapping[str, Any]) -> Answer:
        parsed = RequestPermissionRequest.model_validate({"sessionId": self._session_id, **request})
        try:
            response = await self._connection.request_permission(
                parsed.session_id, parsed.tool_call, parsed.options
            )
        except (acp.RequestError, ConnectionError, ValueError):
            return "unavailable"
        outcome = response.outcome
        if outcome.outcome == "cancelled":
            return "cancelled"
        return _ANSWERS.get(outcome.option_id, "unavailable")

    async def _withdraw(self, request_id: object, call: str) -> None:
        params = {"requestId": request_id, "_meta": {"toolCallId": call}}
        await self._transmit({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(sending)
        self._pending.add(task)
        task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        """Let go of a frame. What could not be sent to a client that is gone is no news."""
        self._pending.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            _LOG.error("an update could not be sent", exc_info=error)

    async def _send(self, update: Mapping[str, Any]) -> None:
        parsed = SessionNotification.model_validate(
            {"sessionId": self._session_id, "update": update}
        )
        await self._connection.session_update(parsed.session_id, parsed.update)


class AcpServer:
    """The methods of the protocol. What is not here is answered with -32601 by the SDK."""

    def __init__(self, sessions: Sessions, send: Send) -> None:
        self._sessions = sessions
        self._send = send
        self._connection: AgentSideConnection | None = None

    def on_connect(self, connection: AgentSideConnection) -> None:
        """Keep the connection; the SDK calls this once."""
        self._connection = connection

    async def initialize(self, **_: object) -> dict[str, Any]:
        """Say what this agent can do."""
        return {
            "protocolVersion": acp.PROTOCOL_VERSION,
            "agentInfo": {"name": "acp-example", "version": version("acp-example")},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {
                    "image": self._sessions.any_images,
                    "audio": False,
                    "embeddedContext": True,
                },
                "sessionCapabilities": {"list": {}},
            },
            "authMethods": [],
        }

    async def new_session(self, cwd: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401
        """Begin a session."""
        directory = _directory(cwd, given)
        with _refusing():
            session = self._sessions.new(directory, self._watcher)
        return {"sessionId": session.header["id"], **_state(session)}

    async def load_session(self, cwd: str, session_id: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401
        """Open a session that is on disk, and show what happened in it."""
        directory = _directory(cwd, given)
        with _refusing():
            session = self._sessions.load(session_id, directory, self._watcher)
        await session.client.flush()
        return _state(session)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: object
    ) -> dict[str, Any]:
        """List the sessions that can be loaded, the latest first."""
        with _refusing():
            return self._sessions.listed(cwd=cwd, cursor=cursor)

    async def prompt(self, prompt: list[Any], session_id: str, **_: object) -> dict[str, Any]:
        """Run a turn. All its updates are written before this answers."""
        session = self._open(session_id)
        if session.broken:
            raise acp.RequestError(
                -32600, "Invalid request: this session broke off in a turn; load it again"
            )
        if session.busy:
            raise acp.RequestError(
                -32600, "Invalid request: this session's prompt is still running"
            )
        blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in prompt]
        try:
            content = message_content(blocks, images=session.takes_images)
        except PromptError as error:
            raise _invalid(str(error)) from None
        with _refusing():
            outcome = await session.prompt(content)
        return _answer(outcome, session)

    async def cancel(self, session_id: str, **_: object) -> None:
        """Cancel the turn of a session, if there is one."""
        if (session := self._sessions.open.get(session_id)) is not None:
            cast("Watcher", session.client).taken_back()
            session.cancel()

    async def set_session_mode(self, mode_id: str, session_id: str, **_: object) -> dict[str, Any]:
        """Change what a session may do, from its next turn on."""
        with _refusing():
            set_mode(self._open(session_id), mode_id)
        return {}

    async def set_config_option(
        self, config_id: str, session_id: str, value: object, **_: object
    ) -> dict[str, Any]:
        """Change an option of a session, from its next turn on."""
        session = self._open(session_id)
        with _refusing():
            set_option(session, config_id, value)
        return {"configOptions": config_options(session)}

    def _open(self, session_id: str) -> Session:
        session = self._sessions.open.get(session_id)
        if session is None:
            raise _invalid(f"no session {session_id!r} is open; load it, or begin a new one")
        return session

    def _watcher(self, session_id: str) -> Watcher:
        assert self._connection is not None  # noqa: S101  the SDK connects before it serves
        return Watcher(self._connection, session_id, self._send)


async def serve(
    sessions: Sessions, *, source: int, target: int, told: Callable[[Stop], None] = lambda _: None
) -> None:
    """Serve one client until its input ends; what still runs then is cancelled, in order.

    `told` gets what ends the input before its time.
    """
    transport = StdioTransport(source, target, ended=sessions.dispose, heeds=_heeds)
    # A plain class on purpose: on a subclass of the SDK's, what is missing answers with success.
    agent = cast("acp.Agent", AcpServer(sessions, transport.send))
    connection = AgentSideConnection(agent, transport, listening=False)
    told(transport.end)
    try:
        await connection.listen()
    finally:
        await connection.close()


def _heeds(notification: Mapping[str, Any]) -> bool:
    """Tell whether a notification means something; of others the SDK prints a traceback each."""
    params = notification.get("params")
    return (
        notification["method"] == "session/cancel"
        and isinstance(params, dict)
        and isinstance(params.get("sessionId"), str)
    )


def _state(session: Session) -> dict[str, Any]:
    return {"modes": mode_state(session), "configOptions": config_options(session)}


def _answer(outcome: Outcome, session: Session) -> dict[str, Any]:
    """Say how a turn ended; a failure is an error that names its code."""
    if outcome.stop_reason is None:
        raise acp.RequestError(
            -32603,
            f"Internal error: turn failed: {outcome.message}",
            {"code": outcome.code},
        )
    answer: dict[str, Any] = {"stopReason": outcome.stop_reason}
    totals = session.conversation.totals
    if totals.known:
        usage = {
            "inputTokens": totals.input or 0,
            "outputTokens": totals.output or 0,
            "totalTokens": totals.total,
            "cachedReadTokens": totals.cache_read,
            "cachedWriteTokens": totals.cache_write,
            "thoughtTokens": totals.reasoning,
        }
        answer["usage"] = {key: count for key, count in usage.items() if count is not None}
    return answer


def _directory(cwd: str, given: Mapping[str, Any]) -> Path:
    """Check what a session is begun with."""
    if given.get("mcp_servers"):
        raise _invalid("mcpServers must be empty: this agent uses none")
    if given.get("additional_directories"):
        raise _invalid("additionalDirectories must be empty: a session has one directory")
    path = Path(cwd)
    if not path.is_absolute():
        raise _invalid(f"cwd must be an absolute path, not {cwd!r}")
    if not path.is_dir():
        raise _invalid(f"cwd is no directory: {cwd!r}")
    return path


def _invalid(message: str) -> acp.RequestError:
    return acp.RequestError(-32602, f"Invalid params: {message}")


@contextmanager
def _refusing() -> Iterator[None]:
    """Answer what a session refuses with an error that says why."""
    try:
        yield
    except (SessionError, OptionError) as error:
        raise _invalid(str(error)) from None
    except OSError as error:
        message = f"Internal error: the session's log can't be written: {error}"
        raise acp.RequestError(-32603, message) from None
