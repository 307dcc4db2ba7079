"""The shell around the driver: boots the agent, carries its bytes, keeps the deadlines."""

import queue
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from snapshot_harness.client import Client
from snapshot_harness.driver import Driver
from snapshot_harness.exceptions import (
    AgentError,
    AgentExitedError,
    AgentTimeoutError,
    ImpureStdoutError,
)
from snapshot_harness.frames import Impurity, LineFramer
from snapshot_harness.leftovers import Leftover, kill_escaped, kill_group
from snapshot_harness.plan import Action, Restart, Send, Serve, StepFailedError
from snapshot_harness.process import DRAIN_S, AgentProcess, Event, Signal
from snapshot_harness.rundir import RunDirectory

POLL_S = 0.01
IDLE_S = 0.1
MOST_NAMED = 10
MOST_FRAMES = 200_000
MOST_BYTES = 256 * 1024 * 1024
_EXITS = "  hint: let the agent exit with 0 when its stdin ends; its stderr may tell why it did not"
_ENDS = "  hint: end what the agent's tools have started, when they are cancelled too"


@dataclass(frozen=True, kw_only=True)
class Boot:
    """How the agent is started, and how long what may take."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: RunDirectory
    scenario_s: float
    shutdown_s: float


@dataclass
class Shell:
    """One run of the agent, from boot to the end of its last process."""

    boot: Boot
    driver: Driver
    client: Client
    findings: list[str] = field(default_factory=list)
    """What did not go as it should, although the script came to its end."""
    stderr_tail: str = ""
    exit_status: int | None = None
    _process: AgentProcess | None = None
    _framer: LineFramer = field(default_factory=LineFramer)
    _unread: deque[dict[str, Any]] = field(default_factory=deque)
    """Frames that came in one piece with the one that the driver looks at."""
    _ends: float = 0.0
    _count: int = 0
    _bytes: int = 0

    def run(self) -> None:
        """Boot the agent, play the script, and end it, whatever happens.

        Raises:
            AgentError: The agent did not hold its side.
        """
        self._ends = time.monotonic() + self.boot.scenario_s
        failure: BaseException | None = None
        try:
            self._boot()
            self._play()
            self._shut_down()
        except BaseException as error:
            failure = error
            raise
        finally:
            self._clean_up(failure)

    def _boot(self) -> None:
        self._framer = LineFramer()
        self._process = AgentProcess(self.boot.argv, env=self.boot.env, cwd=self.boot.directory.cwd)

    @property
    def _agent(self) -> AgentProcess:
        if self._process is None:
            raise RuntimeError("the agent was not booted")
        return self._process

    def _play(self) -> None:
        self._tell(self.driver.tick)
        while not self.driver.done:
            now = time.monotonic()
            if now >= self._ends:
                raise self._error(
                    AgentTimeoutError,
                    f"the scenario is over its {self.boot.scenario_s:g} s, at {self.driver.place}",
                    "raise `timeout_s` in scenario.toml if it needs longer",
                )
            longest = POLL_S if self.driver.polls else IDLE_S
            until = min(self.driver.deadline, self._ends, now + longest)
            try:
                event = self._agent.events.get(timeout=max(0.0, until - now))
            except queue.Empty:
                self._look_for_exit()
                self._tell(self.driver.tick)
            else:
                self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, bytes):
            self._unread.extend(self._frames(event))
            while self._unread:
                self._tell(partial(self.driver.feed, self._unread.popleft()))
        elif event is Signal.SENT:
            self._tell(self.driver.sent)
        else:
            self._look_for_exit(wait_s=0.5)

    def _frames(self, data: bytes) -> list[dict[str, Any]]:
        try:
            frames = [frame.value for frame in self._framer.feed(data)]
        except Impurity as impurity:
            raise self._impure(impurity) from None
        self._bytes += len(data)
        self._count += len(frames)
        if self._count > MOST_FRAMES or self._bytes > MOST_BYTES:
            raise self._error(
                AgentError,
                f"the agent wrote {self._count} frames, {self._bytes} bytes, and seems to go on",
                f"let it end: {MOST_FRAMES} frames or {MOST_BYTES} bytes are no scenario",
            )
        return frames

    def _tell(self, tell: Callable[[float], list[Action]]) -> None:
        try:
            actions = tell(time.monotonic())
        except StepFailedError as error:
            kind = AgentTimeoutError if error.timed_out else AgentError
            raise self._error(kind, str(error), error.hint) from None
        for action in actions:
            if isinstance(action, Send):
                self._agent.send(action.data)
            elif isinstance(action, Serve):
                self.client.serve(action.request, self._agent)
            else:
                self._restart(action)

    def _restart(self, action: Restart) -> None:
        # What has come already came before the end, and stands before its marker.
        self.driver.transcript.extend(self._unread)
        self._unread.clear()
        if action.kill:
            self._agent.kill()
        self._end(expected=-9 if action.kill else 0)
        self._boot()
        self._tell(self.driver.restarted)

    def _shut_down(self) -> None:
        self._end(expected=0)

    def _end(self, *, expected: int) -> None:
        """Close stdin, wait for the exit, and see that nothing stays behind."""
        agent = self._agent
        agent.close_stdin()
        ending = agent.end(time.monotonic() + self.boot.shutdown_s, self._late)
        self.exit_status = ending.status
        if ending.forced:
            self.findings.append(f"after the end of its stdin {ending.forced}\n{_EXITS}")
        elif ending.status != expected:
            self.findings.append(f"the agent ended with status {ending.status}\n{_EXITS}")
        self._release(agent, killed=expected != 0)
        try:
            self._framer.end()
        except Impurity as impurity:
            if expected == 0:
                raise self._impure(impurity) from None

    def _release(self, agent: AgentProcess, *, killed: bool) -> None:
        """Let go of a process that has exited, and of whatever it left.

        One that the script had killed could not end what it had started, and is not blamed.
        """
        self.client.end()
        # The pipes end with the last process that holds them, which may not be the agent.
        drained = agent.drain(self._late, seconds=0.2)
        left = [*kill_group(agent.pid), *self._kill_escaped(agent)]
        if not drained:
            agent.drain(self._late, seconds=DRAIN_S)
        self.stderr_tail = agent.stderr_tail
        agent.close()
        self._process = None
        if left and not killed:
            self.findings.append(
                f"the agent left processes behind, which were killed: {_names(left)}\n{_ENDS}"
            )

    def _late(self, event: Event) -> None:
        """Take in what comes after the script's end: it belongs to the transcript."""
        if isinstance(event, bytes):
            self.driver.transcript.extend(self._frames(event))

    def _look_for_exit(self, wait_s: float = 0.0) -> None:
        agent = self._agent
        ends = time.monotonic() + wait_s
        while agent.status is None and time.monotonic() < ends:
            time.sleep(0.005)
        if agent.status is None:
            if wait_s:
                raise self._error(AgentExitedError, self._closed(), "keep all three pipes open")
            return
        # What it wrote before it ended may still be the frame that is waited for.
        agent.drain(self._last_words, seconds=0.2)
        if not self.driver.done:
            self.exit_status = agent.status
            raise self._error(
                AgentExitedError,
                f"the agent ended at {self.driver.place}, before the script did",
                "see what it wrote to stderr",
            )

    def _last_words(self, event: Event) -> None:
        if isinstance(event, bytes):
            self._take(event)

    def _closed(self) -> str:
        return f"the agent closed a pipe at {self.driver.place}, and went on running"

    def _clean_up(self, failure: BaseException | None) -> None:
        """Kill what still runs: after a failure nobody waits for a graceful end."""
        agent = self._process
        if agent is not None:
            agent.kill()
            self._process = None
            agent.end(time.monotonic() + 1.0, lambda _: None)
            self.client.end()
            kill_group(agent.pid, grace_s=0)
            if left := self._kill_escaped(agent):
                self.driver.notes.append(f"killed with the agent: {_names(left)}")
            agent.drain(lambda _: None, seconds=0.2)
            self.stderr_tail = agent.stderr_tail
            agent.close()
        elif failure is not None:  # perhaps an interrupt while it was started
            self._kill_escaped()
        if isinstance(failure, AgentError) and not failure.stderr_tail:
            failure.stderr_tail = self.stderr_tail

    def _kill_escaped(self, agent: AgentProcess | None = None) -> list[Leftover]:
        directory, after = self.boot.directory, agent.pid if agent is not None else 0
        return kill_escaped(directory.path, also_below=directory.cwd, after=after)

    def _impure(self, impurity: Impurity) -> AgentError:
        return self._error(
            ImpureStdoutError,
            str(impurity),
            "write nothing but frames to stdout: diagnostics belong on stderr",
        )

    def _error(self, kind: type[AgentError], what: str, hint: str = "") -> AgentError:
        tail = self._process.stderr_tail if self._process is not None else self.stderr_tail
        return kind(what=what, hint=hint, stderr_tail=tail, exit_status=self.exit_status)


def _names(processes: Sequence[Leftover]) -> str:
    """Name some processes, however many there are."""
    more = len(processes) - MOST_NAMED
    names = ", ".join(str(process) for process in processes[:MOST_NAMED])
    return names + (f" and {more} more" if more > 0 else "")
