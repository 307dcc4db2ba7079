"""The scripted client: told a frame, it says what to send. No I/O.

A plan is a generator that yields what to do and what to wait for (`moves.py`
makes one of input.json); `Driver` runs it, and keeps what the agent said.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from snapshot_harness.frames import encode
from snapshot_harness.permissions import METHOD, PermissionDesk, as_name, as_object, refuse
from snapshot_harness.plan import (
    Action,
    Move,
    Moves,
    RefusedError,
    Restart,
    Send,
    Serve,
    Session,
    StepFailedError,
    Until,
    World,
)
from snapshot_harness.steps import PermissionAnswer

MARKER = {"snapshot": "restart"}
"""The transcript's line where the agent was booted again."""

SERVED = {
    "fs/read_text_file": "fs",
    "fs/write_text_file": "fs",
    "terminal/create": "terminal",
    "terminal/output": "terminal",
    "terminal/wait_for_exit": "terminal",
    "terminal/kill": "terminal",
    "terminal/release": "terminal",
}


class Driver:
    """Run a plan against an agent."""

    def __init__(
        self,
        plan: Callable[["Driver"], Moves],
        *,
        world: World,
        step_s: float,
        answers: Sequence[PermissionAnswer] = (),
        capabilities: frozenset[str] = frozenset(),
    ) -> None:
        self.world = world
        self.capabilities = capabilities
        self.desk = PermissionDesk(answers)
        self.transcript: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.sessions: list[Session] = []
        self.responses: dict[int, dict[str, Any]] = {}
        self.done = False
        self.place = "before the first step"
        self._step_s = step_s
        self._asked = 0
        self._unsent = 0
        self._restarting = False
        self._actions: list[Action] = []
        self._moves = plan(self)
        self._until: Until | None = None
        self._wait_ends = self._step_ends = 0.0
        self._now = 0.0

    # What the shell tells.

    def feed(self, frame: dict[str, Any], now: float) -> list[Action]:
        """Take in one frame of the agent.

        Raises:
            StepFailedError: The step in flight did not go as the script says.
        """
        self._now = now
        place = len(self.transcript)
        self.transcript.append(frame)
        self._take(frame, place)
        return self._advance()

    def sent(self, now: float) -> list[Action]:
        """Take note that one `Send` has been written."""
        self._unsent -= 1
        return self.tick(now)

    def restarted(self, now: float) -> list[Action]:
        """Take note that the agent was booted again."""
        self._restarting = False
        self._unsent = 0
        self.desk.forget()
        for session in self.sessions:
            session.prompt, session.cancelling = None, False
        self.transcript.append(dict(MARKER))
        return self.tick(now)

    def tick(self, now: float) -> list[Action]:
        """Look again: time has passed, or a file may have changed. Begins with the first step.

        Raises:
            StepFailedError: The wait or the step is over its time.
        """
        self._now = now
        return self._advance()

    @property
    def polls(self) -> bool:
        """Whether the wait in flight is for a file, so that `tick` must be called often."""
        return self._until is not None and self._until.polls

    @property
    def deadline(self) -> float:
        """When the wait in flight is over its time."""
        return self._wait_ends

    # What the steps use.

    def send(self, frame: object) -> Moves:
        """Send a frame, and wait until the agent's pipe has taken it."""
        yield from self.send_bytes(encode(frame))

    def send_bytes(self, data: bytes) -> Moves:
        """Send bytes, and wait until the agent's pipe has taken them."""
        self._unsent += 1
        yield Send(data)
        yield Until(
            lambda: self._unsent == 0, "the agent to read its stdin", lambda: "it did not read it"
        )

    def ask(self, method: str, params: object) -> Iterator[Move]:
        """Send a request; the id is the last of `asked`."""
        self._asked += 1
        frame = {"jsonrpc": "2.0", "id": self._asked, "method": method}
        yield from self.send(frame if params is None else {**frame, "params": params})

    @property
    def asked(self) -> int:
        """The id of the last request."""
        return self._asked

    def restart(self, *, kill: bool) -> Moves:
        """Have the agent booted again."""
        self._restarting = True
        yield Restart(kill)
        yield Until(lambda: not self._restarting, "the agent to restart", lambda: "it did not")

    def cancel(self, session: Session) -> Moves:
        """Cancel the turn of a session, then answer what the agent asked in it."""
        session.cancelling = session.prompt is not None
        params = {"sessionId": session.id}
        yield from self.send({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
        self._reply(self.desk.cancel(session.id))

    def begin(self, place: str) -> None:
        """Take note that a step begins, and with it its time."""
        self.place = place
        self._step_ends = self._now + self._step_s

    # Inside.

    @property
    def _is_steps_end(self) -> bool:
        return self._wait_ends >= self._step_ends

    def _advance(self) -> list[Action]:
        try:
            while not self.done and self._goes_on():
                self._step()
        except RefusedError as error:
            raise StepFailedError(place=self.place, what=error.what, hint=error.hint) from None
        actions, self._actions = self._actions, []
        return actions

    def _goes_on(self) -> bool:
        until = self._until
        if until is None or until.check():
            return True
        if self._now >= self._wait_ends:
            longer = "`deadlines.step_s` in suite.toml" if self._is_steps_end else "its `timeoutMs`"
            raise StepFailedError(
                place=self.place,
                what="; ".join([f"waited for {until.what}", until.seen(), *self.desk.held_back()]),
                hint=f"see what the agent did instead, or raise {longer}",
                timed_out=True,
            )
        return False

    def _step(self) -> None:
        self._until = None
        move = next(self._moves, None)
        if move is None:
            self.done = True
        elif isinstance(move, Until):
            self._until = move
            # A step's own time ends it even where a wait would go on.
            wait_s = self._step_s if move.timeout_s is None else move.timeout_s
            self._wait_ends = min(self._step_ends, self._now + wait_s)
        else:
            self._actions.append(move)

    def _take(self, frame: dict[str, Any], place: int) -> None:
        method = frame.get("method")
        if method is None:
            self._take_response(frame)
        elif "id" in frame:
            self._take_request(frame, method, place)
        elif method == "session/update":
            self._take_update(frame)

    def _take_response(self, frame: dict[str, Any]) -> None:
        answered = frame.get("id")
        if type(answered) is not int or not self._is_due(answered):
            if answered is not None:
                self.notes.append(f"the agent answered a request nobody made: id {answered!r}")
            return
        self.responses[answered] = frame
        for session in self.sessions:
            if session.prompt == answered:
                session.prompt, session.cancelling = None, False

    def _is_due(self, request: int) -> bool:
        return 1 <= request <= self._asked and request not in self.responses

    def _take_update(self, frame: dict[str, Any]) -> None:
        params = frame.get("params")
        if not isinstance(params, dict) or not isinstance(params.get("update"), dict):
            return
        update = params["update"]
        tool_call = as_name(update.get("toolCallId"))
        if tool_call is not None:
            self.desk.announce(as_name(params.get("sessionId")), tool_call)
        for session in self.sessions:
            if session.id == params.get("sessionId"):
                session.updates.append(update)

    def _take_request(self, frame: dict[str, Any], method: object, place: int) -> None:
        if method == METHOD:
            asking = as_object(frame.get("params")).get("sessionId")
            cancelling = any(one.id == asking and one.cancelling for one in self.sessions)
            self._reply(self.desk.ask(frame, place=place, cancelling=cancelling))
        elif SERVED.get(str(method)) in self.capabilities:
            self._actions.append(Serve(frame))
        else:
            self.notes.append(f"the agent asked for {method!r}, which this client does not offer")
            self._reply([refuse(frame, -32601, f"Method not found: {method}")])

    def _reply(self, responses: Sequence[dict[str, Any]]) -> None:
        for response in responses:
            self._unsent += 1
            self._actions.append(Send(encode(response)))
