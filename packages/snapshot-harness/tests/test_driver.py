"""The scripted client, told frames by hand: what it sends, what it waits for, what it refuses."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_harness.driver import Driver
from snapshot_harness.moves import play
from snapshot_harness.plan import Action, Restart, Send, Serve, StepFailedError
from snapshot_harness.steps import Script

Event = dict[str, Any]


@dataclass
class FakeWorld:
    """Files that a test makes up."""

    live: bool = False
    roots: dict[str, str] = field(default_factory=lambda: {"cwd": "/r/cwd", "home": "/r/home"})
    present: set[str] = field(default_factory=set)
    logs: dict[str, list[Event]] = field(default_factory=dict)
    below: list[list[Event]] = field(default_factory=list)
    hung: int | None = 0
    hangs: bool = False

    def has_file(self, path: str) -> bool:
        return path in self.present

    def files(self) -> Sequence[str]:
        return sorted(self.present)

    def events(self, session: str) -> Sequence[Event]:
        return self.logs.get(session, [])

    def children(self, session: str) -> Sequence[Sequence[Event]]:  # noqa: ARG002
        return self.below

    def hanging(self) -> int | None:
        return self.hung

    def hangs_now(self) -> bool:
        return self.hangs


class Play:
    """A driver whose shell is the test."""

    def __init__(
        self,
        *steps: dict[str, Any],
        answers: Sequence[dict[str, Any]] = (),
        world: FakeWorld | None = None,
        capabilities: frozenset[str] = frozenset(),
    ) -> None:
        text = json.dumps({"steps": steps, "permissionAnswers": answers})
        script = Script.model_validate_json(text)
        self.world = world or FakeWorld()
        self.now = 0.0
        self.sent: list[Any] = []
        self.others: list[Action] = []
        self.driver = Driver(
            partial(play, script),
            world=self.world,
            step_s=60,
            answers=script.permission_answers,
            capabilities=capabilities,
        )
        self.tick()

    def take(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                line = action.data.rstrip(b"\n")
                self.sent.append(json.loads(line) if line.startswith(b"{") else line)
                self.take(self.driver.sent(self.now))
            else:
                self.others.append(action)

    def tick(self, after: float = 0) -> None:
        self.now += after
        self.take(self.driver.tick(self.now))

    def tell(self, **frame: Any) -> None:  # noqa: ANN401
        self.take(self.driver.feed({"jsonrpc": "2.0", **frame}, self.now))

    def update(self, session: str = "s1", **update: Any) -> None:  # noqa: ANN401
        self.tell(method="session/update", params={"sessionId": session, "update": update})

    def answer(self, result: Any = None) -> None:  # noqa: ANN401
        self.tell(id=self.driver.asked, result={} if result is None else result)

    def started(self) -> "Play":
        """Answer the handshake and the first session."""
        self.answer()
        self.answer({"sessionId": "s1"})
        return self

    @property
    def done(self) -> bool:
        return self.driver.done

    @property
    def last(self) -> Any:  # noqa: ANN401
        return self.sent[-1]


INITIALIZE = {"op": "initialize"}
NEW = {"op": "newSession"}
PROMPT = {"op": "prompt", "text": "Hi"}


def after_start(*steps: dict[str, Any], **rest: Any) -> Play:  # noqa: ANN401
    return Play(INITIALIZE, NEW, *steps, **rest).started()


def error_of(caught: pytest.ExceptionInfo[StepFailedError]) -> str:
    return str(caught.value)


def test_the_handshake_announces_what_the_suite_grants() -> None:
    plain, granted = (
        Play(INITIALIZE),
        Play({"op": "initialize", "terminalOutput": True}, capabilities=frozenset({"fs"})),
    )

    assert plain.last == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
            },
        },
    }
    assert granted.last["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": False,
        "_meta": {"terminal_output": True},
    }


def test_a_prompt_ends_with_its_answer() -> None:
    player = after_start(PROMPT)

    assert player.last["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "Hi"}]}
    assert not player.done
    player.answer({"stopReason": "end_turn"})
    assert player.done


def test_a_session_is_made_in_the_cwd_or_where_a_step_says() -> None:
    player = Play(NEW, {**NEW, "cwd": "sub", "additionalDirectories": ["{{home}}/x", "y"]})
    assert player.last["params"] == {"cwd": "/r/cwd", "mcpServers": []}

    player.answer({"sessionId": "s1"})

    assert player.last["params"] == {
        "cwd": "/r/cwd/sub",
        "mcpServers": [],
        "additionalDirectories": ["/r/home/x", "/r/cwd/y"],
    }


def test_a_step_may_name_its_session_by_number() -> None:
    player = after_start(NEW, {**PROMPT, "session": 1}, PROMPT)
    player.answer({"sessionId": "s2"})

    assert player.last["params"]["sessionId"] == "s1"
    player.answer()
    assert player.last["params"]["sessionId"] == "s2"


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        ([PROMPT], "step 0 (prompt): it comes before newSession"),
        ([{"op": "waitForTurnEnd"}], "step 0 (waitForTurnEnd): it comes before newSession"),
        ([{**PROMPT, "session": 2}], "step 0 (prompt): there is no session 2; 0 were made"),
        (
            [{"op": "notify", "method": "x", "params": {"s": "{{session:1}}"}}],
            "step 0 (notify): there is no session 1; 0 were made",
        ),
    ],
)
def test_a_session_that_is_not_there_is_told(steps: list[dict[str, Any]], what: str) -> None:
    with pytest.raises(StepFailedError) as caught:
        Play(*steps)

    assert error_of(caught) == what


@pytest.mark.parametrize(
    ("step", "frame", "what"),
    [
        (PROMPT, {"error": {"code": 1}}, 'session/prompt was answered with an error: {"code": 1}'),
        (PROMPT, {}, "session/prompt was answered with neither a result nor an error"),
        (
            {"op": "promptExpectError", "text": "Hi"},
            {"result": {}},
            "session/prompt succeeded, and an error was expected: {}",
        ),
        (NEW, {"result": {}}, "the agent answered session/new without a sessionId: {}"),
        (NEW, {"result": []}, "the agent answered session/new without a sessionId: []"),
        (
            {"op": "newSessionExpectError"},
            {"result": {"sessionId": "s"}},
            'session/new succeeded, and an error was expected: {"sessionId": "s"}',
        ),
        (
            {"op": "request", "method": "x", "expectError": 5},
            {"error": {"code": 6}},
            "x was answered with error 6, expected 5",
        ),
        (
            {"op": "loadSession"},
            {"error": {"code": 6}},
            'session/load was answered with an error: {"code": 6}',
        ),
    ],
)
def test_an_answer_of_the_wrong_kind_fails_the_step(
    step: dict[str, Any], frame: dict[str, Any], what: str
) -> None:
    player = after_start(step)

    with pytest.raises(StepFailedError) as caught:
        player.tell(id=3, **frame)

    assert error_of(caught) == f"step 2 ({step['op']}): {what}"


@pytest.mark.parametrize(
    "step",
    [
        {"op": "promptExpectError", "text": "Hi"},
        {"op": "newSessionExpectError"},
        {"op": "loadSession", "expectError": True},
        {"op": "request", "method": "x", "expectError": True},
        {"op": "request", "method": "x", "expectError": -32601},
    ],
)
def test_an_expected_error_passes(step: dict[str, Any]) -> None:
    player = after_start(step)

    player.tell(id=3, error={"code": -32601})

    assert player.done


def test_a_session_is_loaded_by_its_number() -> None:
    player = after_start({"op": "loadSession", "session": 1})

    assert player.last["method"] == "session/load"
    assert player.last["params"] == {"sessionId": "s1", "cwd": "/r/cwd", "mcpServers": []}
    player.answer()
    assert player.done


def test_content_requests_and_notifications_are_filled_in() -> None:
    content = [{"type": "resource_link", "uri": "file://{{cwd}}/a", "n": 1}]
    player = after_start(
        {"op": "promptContent", "content": content},
        {"op": "request", "method": "m", "params": {"id": "{{session:1}}", "other": "{{x}}"}},
        {"op": "notify", "method": "n"},
        {"op": "sendRaw", "line": "raw {{cwd}}"},
    )

    assert player.last["params"]["prompt"][0] == {
        "type": "resource_link",
        "uri": "file:///r/cwd/a",
        "n": 1,
    }
    player.answer()
    assert player.last["params"] == {"id": "s1", "other": "{{x}}"}
    player.answer()
    assert player.sent[-2:] == [{"jsonrpc": "2.0", "method": "n"}, b"raw {{cwd}}"]
    assert player.done


def test_sending_counts_as_part_of_the_step() -> None:
    driver = Driver(
        partial(play, Script.model_validate({"steps": [{"op": "sendRaw", "line": "x"}]})),
        world=FakeWorld(),
        step_s=60,
    )
    driver.tick(0)

    with pytest.raises(StepFailedError) as caught:
        driver.tick(60)

    assert caught.value.timed_out
    assert "waited for the agent to read its stdin; it did not read it" in str(caught.value)


def test_a_detached_prompt_is_settled_at_the_end() -> None:
    player = after_start({**PROMPT, "detach": True})

    assert not player.done
    player.answer()
    assert player.done


def test_a_detached_prompt_is_settled_by_a_cancel() -> None:
    content = {"op": "promptContent", "content": [], "detach": True}
    player = after_start(content, {"op": "cancel"})

    assert player.last["method"] == "session/prompt"
    player.world.hung = 1
    player.tick()
    assert player.last["method"] == "session/cancel"
    assert not player.done
    player.tell(id=3, result={"stopReason": "cancelled"})
    assert player.done


def test_a_cancel_without_a_prompt_is_sent_at_once() -> None:
    player = after_start({"op": "cancel"})

    assert player.last == {
        "jsonrpc": "2.0",
        "method": "session/cancel",
        "params": {"sessionId": "s1"},
    }
    assert player.done


def test_a_cancel_waits_for_the_call_that_hangs() -> None:
    player = after_start({"op": "promptAndCancel", "text": "Hi"})

    player.tick()
    assert player.last["method"] == "session/prompt"
    player.world.hung = 1
    player.tick()
    assert player.last["method"] == "session/cancel"
    player.answer()
    assert player.done


def test_a_hang_of_an_earlier_prompt_does_not_count() -> None:
    player = after_start({"op": "promptAndCancel", "text": "Hi"}, world=FakeWorld(hung=3))

    player.tick()
    assert player.last["method"] == "session/prompt"
    player.world.hung = 4
    player.tick()
    assert player.last["method"] == "session/cancel"


def test_a_cancel_waits_for_as_many_hanging_calls_as_it_names() -> None:
    step = {
        "op": "promptAndCancel",
        "text": "Hi",
        "hanging": 2,
        "waitForFile": {"path": "marker"},
    }
    player = after_start(step)
    player.world.present = {"marker"}
    player.world.hung = 1

    player.tick()
    assert player.last["method"] == "session/prompt"
    with pytest.raises(StepFailedError, match="waited for 2 calls to hang; 1 did"):
        player.tick(61)


@pytest.mark.parametrize(("hangs", "waits"), [(True, True), (False, False)])
def test_a_condition_is_enough_unless_the_call_in_flight_hangs(*, hangs: bool, waits: bool) -> None:
    step = {"op": "promptAndCancel", "text": "Hi", "wait": {"op": "waitForFile", "path": "m"}}
    player = after_start(step, world=FakeWorld(hangs=hangs))
    player.world.present = {"m"}

    player.tick()

    assert (player.last["method"] == "session/prompt") is waits


def test_a_live_cancel_needs_its_condition_alone() -> None:
    step = {"op": "promptAndCancel", "text": "Hi", "wait": {"op": "waitForFile", "path": "m"}}
    player = after_start(step, world=FakeWorld(live=True, present={"m"}))

    assert player.last["method"] == "session/cancel"


@pytest.mark.parametrize("world", [FakeWorld(live=True), FakeWorld(hung=None)])
def test_a_cancel_with_nothing_to_wait_for_is_refused(world: FakeWorld) -> None:
    with pytest.raises(StepFailedError, match="nothing says when to cancel"):
        after_start({"op": "promptAndCancel", "text": "Hi"}, world=world)


def test_a_message_is_awaited_by_its_exact_text() -> None:
    step = {"op": "promptAndWaitForAgentMessage", "text": "Hi", "waitForText": "Ho"}
    player = after_start(step)
    chunk = {"sessionUpdate": "agent_message_chunk"}

    player.update(**chunk, content={"type": "text", "text": "Ho!"})
    player.answer()
    assert not player.done
    player.update("other", **chunk, content={"type": "text", "text": "Ho"})
    assert not player.done
    player.update(**chunk, content={"type": "text", "text": "Ho"})
    assert player.done


def test_an_update_counts_since_the_last_prompt() -> None:
    wait = {"op": "waitForUpdate", "update": {"sessionUpdate": "plan", "entries": [{"a": 1}]}}
    player = after_start(PROMPT, PROMPT, wait)
    player.update(sessionUpdate="plan", entries=[{"a": 1, "b": 2}])
    player.answer()
    player.answer()

    assert not player.done
    player.update(sessionUpdate="plan", entries=[{"a": 1.0}])
    player.update(sessionUpdate="plan", entries=[])
    player.update(sessionUpdate="plan")
    assert not player.done
    player.update(sessionUpdate="plan", entries=[{"a": 1, "b": 2}], more=True)
    assert player.done


def test_any_frame_may_be_awaited() -> None:
    asked = {"op": "waitForUpdate", "frame": {"method": "session/request_permission"}}
    player = after_start({"op": "promptAndCancel", "text": "Hi", "wait": asked, "hanging": 0})
    player.update(sessionUpdate="plan")
    assert player.last["method"] == "session/prompt"

    player.tell(id=1, method="session/request_permission", params={})

    assert player.last["method"] == "session/cancel"


def test_an_update_before_its_session_is_known_counts_too() -> None:
    player = Play(NEW, {"op": "waitForUpdate", "update": {"sessionUpdate": "plan"}})

    player.update(sessionUpdate="plan")
    player.tell(method="session/update")
    player.answer({"sessionId": "s1"})

    assert player.done


def event(kind: str, **data: Any) -> Event:  # noqa: ANN401
    return {"type": kind, "data": data}


def test_a_file_is_awaited() -> None:
    player = Play({"op": "waitForFile", "path": "a"})

    assert player.driver.polls
    player.world.present = {"a"}
    player.tick()
    assert player.done


def test_a_turn_is_awaited_at_both_its_ends() -> None:
    player = after_start({"op": "waitForTurnStart", "minimumTurn": 2}, {"op": "waitForTurnEnd"})
    log = player.world.logs.setdefault("s1", [])

    log += [event("turn/start", turn=1), event("turn/end", turn=1)]
    player.tick()
    log.append(event("turn/start", turn=2))
    assert not player.done
    player.tick()
    log.append(event("turn/end", turn=2))
    player.tick()
    assert player.done


def test_a_malformed_turn_number_fails_at_once() -> None:
    world = FakeWorld(logs={"s1": [event("turn/start", turn="1")]})

    with pytest.raises(StepFailedError, match="the log has a turn/start with the turn '1'"):
        after_start({"op": "waitForTurnStart"}, world=world)


def test_a_childs_turn_is_awaited() -> None:
    player = after_start({"op": "waitForSubagentTurnEnd", "child": 2, "minimumTurn": 2})

    player.world.below = [[event("turn/end", turn=2)]]
    player.tick()
    player.world.below.append([event("turn/end", turn=1)])
    player.tick()
    assert not player.done
    player.world.below[1] += [event("turn/start", turn=2), event("turn/end", turn=2)]
    player.tick()
    assert player.done


def test_an_event_is_awaited_by_type_data_and_place() -> None:
    wait = {"op": "waitForEvent", "type": "t", "where": {"a": {"b": 1}}, "after": "turn/end"}
    player = after_start(wait)
    log = player.world.logs.setdefault("s1", [event("t", a={"b": 1})])

    player.tick()
    log.append(event("turn/end", turn=1))
    log.append(event("t", a={"b": 2}))
    player.tick()
    assert not player.done
    log.append(event("t", a={"b": 1, "c": 3}))
    player.tick()
    assert player.done


def test_an_event_of_a_later_call_of_a_running_batch_is_refused() -> None:
    at = {"turn": 1, "step": 1}
    calls = [event("tool/call", **at, callId="c1"), event("tool/call", **at, callId="c2")]
    where: dict[str, Any] = {"message": {"content": [{"toolCallId": "c2"}], "n": 1}}
    wait = {"op": "waitForEvent", "type": "tool/result", "where": where}
    world = FakeWorld(logs={"s1": calls})

    with pytest.raises(StepFailedError, match="'c2' is a later call of its batch"):
        after_start({"op": "promptAndCancel", "text": "Hi", "wait": wait}, world=world)


@pytest.mark.parametrize("wait", [{"type": "tool/call", "where": {"callId": "c2"}}, {"type": "x"}])
def test_other_events_of_a_running_batch_may_be_awaited(wait: dict[str, Any]) -> None:
    at = {"turn": 1, "step": 1}
    log = [event("tool/call", **at, callId="c1"), event("tool/call", **at, callId="c2"), event("x")]
    step = {"op": "promptAndCancel", "text": "Hi", "wait": {"op": "waitForEvent", **wait}}

    player = after_start(step, world=FakeWorld(logs={"s1": log}, live=True))

    assert player.last["method"] == "session/cancel"


@pytest.mark.parametrize(
    ("wait", "seen"),
    [
        (
            {"op": "waitForFile", "path": "a"},
            "waited for the file 'a'; the cwd holds b, c",
        ),
        (
            {"op": "waitForTurnEnd"},
            "waited for the end of a turn; the log holds 1 events, the last of them turn/start",
        ),
        (
            {"op": "waitForTurnStart", "minimumTurn": 2},
            "waited for an open turn, at least number 2; the log holds 1 events",
        ),
        ({"op": "waitForSubagentTurnEnd"}, "waited for child 1 to close turn 1; the log holds"),
        (
            {"op": "waitForEvent", "type": "t", "where": {"a": 1}},
            "waited for an event 't' with {\"a\": 1}; the log holds 1 events",
        ),
        (
            {"op": "waitForUpdate", "frame": {"a": 1}},
            'waited for a frame that holds {"a": 1}; 3 came since the prompt',
        ),
        (
            {"op": "waitForUpdate", "update": {"a": 1}},
            'waited for an update that holds {"a": 1}; 1 came since the prompt, the last of them x',
        ),
    ],
)
def test_a_wait_that_is_over_its_time_says_what_there_was(wait: dict[str, Any], seen: str) -> None:
    world = FakeWorld(present={"b", "c"}, logs={"s1": [event("turn/start", turn=1)]})
    player = after_start({**wait, "timeoutMs": 500}, world=world)
    player.update(sessionUpdate="x")

    assert player.driver.deadline == pytest.approx(player.now + 0.5)
    with pytest.raises(StepFailedError) as caught:
        player.tick(0.5)

    assert seen in error_of(caught)
    assert caught.value.timed_out


def test_what_there_was_may_be_nothing() -> None:
    player = Play({"op": "waitForFile", "path": "a"})

    with pytest.raises(StepFailedError, match="the cwd holds nothing"):
        player.tick(10)


def test_a_step_that_is_over_its_time_shows_the_last_frame() -> None:
    player = after_start(PROMPT)

    with pytest.raises(StepFailedError) as caught:
        player.tick(60)
    assert 'the last of 2 frames was {"jsonrpc": "2.0", "id": 2' in error_of(caught)


def test_an_agent_that_wrote_nothing_is_told_so() -> None:
    with pytest.raises(StepFailedError, match="the agent wrote no frame"):
        Play(INITIALIZE).tick(60)


def test_a_long_frame_is_shown_shortened() -> None:
    player = after_start(PROMPT)
    player.update(text="x" * 1000)

    with pytest.raises(StepFailedError) as caught:
        player.tick(60)

    assert len(error_of(caught)) < 500


def test_permission_answers_are_sent_as_the_queue_says() -> None:
    answers = [{"kind": "allow_once"}]
    player = after_start(PROMPT, answers=answers)
    options = [{"optionId": "yes", "kind": "allow_once"}]
    asked = {"sessionId": "s1", "toolCall": {"toolCallId": "a"}, "options": options}

    player.tell(id="q", method="session/request_permission", params=asked)

    assert player.last == {
        "jsonrpc": "2.0",
        "id": "q",
        "result": {"outcome": {"outcome": "selected", "optionId": "yes"}},
    }
    player.answer()
    assert player.done


def test_a_mistake_of_the_answers_fails_once_the_step_has_settled() -> None:
    player = after_start(PROMPT, PROMPT, answers=[{"kind": "allow_once"}])
    player.tell(id="q", method="session/request_permission", params={"sessionId": "s1"})

    with pytest.raises(StepFailedError, match=r"step 2 \(prompt\): permission answer 0"):
        player.answer()


def test_an_answer_left_over_fails_the_run() -> None:
    player = after_start(PROMPT, answers=[{"kind": "allow_once"}])

    with pytest.raises(StepFailedError, match="was never asked for"):
        player.answer()


def test_a_cancel_answers_what_is_open_and_what_comes_after_it() -> None:
    answers = [{"kind": "hold"}]
    step = {"op": "promptAndCancel", "text": "Hi", "wait": {"op": "waitForFile", "path": "m"}}
    player = after_start(step, answers=answers)
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "a"}}
    player.tell(id="q1", method="session/request_permission", params=params)
    player.update(sessionUpdate="tool_call", toolCallId="b")
    player.world.present = {"m"}

    player.tick()
    player.tell(id="q2", method="session/request_permission", params=params)

    outcome = {"outcome": {"outcome": "cancelled"}}
    assert player.sent[-3]["method"] == "session/cancel"
    assert [(one["id"], one["result"]) for one in player.sent[-2:]] == [
        ("q1", outcome),
        ("q2", outcome),
    ]
    player.tell(id=3, result={})
    assert player.done


def test_a_request_that_the_client_does_not_know_is_refused_and_noted() -> None:
    player = after_start(PROMPT)

    player.tell(id=[1], method="fs/read_text_file", params={})

    assert player.last["id"] == [1]
    assert player.last["error"] == {
        "code": -32601,
        "message": "Method not found: fs/read_text_file",
    }
    assert player.driver.notes == [
        "the agent asked for 'fs/read_text_file', which this client does not offer"
    ]


def test_a_granted_request_is_served() -> None:
    player = after_start(PROMPT, capabilities=frozenset({"terminal"}))

    player.tell(id=1, method="terminal/create", params={})

    (action,) = player.others
    assert isinstance(action, Serve)
    assert action.request["method"] == "terminal/create"


def test_an_answer_to_no_request_is_noted_and_other_frames_pass() -> None:
    player = after_start(PROMPT)

    player.tell(id=99, result={})
    player.tell(id=1, result={})
    player.tell(id=True, result={})
    player.tell(id=None, error={})
    player.tell(method="$/progress", params=[])
    player.tell(method="session/update", params={"sessionId": "s1", "update": 1})

    assert player.driver.notes == [
        "the agent answered a request nobody made: id 99",
        "the agent answered a request nobody made: id 1",
        "the agent answered a request nobody made: id True",
    ]
    assert len(player.driver.transcript) == 8


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["s1", "a", "turn/end"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["sessionId", "update", "toolCallId", "toolCall", "options", "kind"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
METHODS = ["session/update", "session/request_permission", "fs/read_text_file", "x"]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "method": st.sampled_from(METHODS) | JSON,
                "id": JSON,
                "params": JSON,
                "result": JSON,
                "error": JSON,
            },
        ),
        max_size=6,
    )
)
def test_no_frame_whatever_is_in_it_brings_the_driver_down(frames: list[dict[str, Any]]) -> None:
    player = after_start(PROMPT, answers=[{"kind": "allow_once", "toolCall": 1}, {"kind": "hold"}])

    with contextlib.suppress(StepFailedError):
        for frame in frames:
            player.tell(**frame)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["turn/start", "turn/end", "tool/call"]) | JSON},
            optional={"data": JSON},
        ),
        max_size=5,
    )
)
def test_no_log_whatever_is_in_it_brings_a_wait_down(log: list[dict[str, Any]]) -> None:
    wait = {"op": "waitForEvent", "type": "tool/result", "where": {"callId": "a"}}
    for step in ({"op": "waitForTurnStart"}, {"op": "waitForTurnEnd"}, wait):
        world = FakeWorld(logs={"s1": log}, below=[log], live=True)
        with contextlib.suppress(StepFailedError):
            after_start({"op": "promptAndCancel", "text": "Hi", "wait": step}, world=world)


def test_a_restart_marks_the_transcript_and_drops_what_was_in_flight() -> None:
    player = after_start(
        {**PROMPT, "detach": True}, {"op": "restartAgent", "kill": True}, {"op": "cancel"}
    )
    assert player.others == []
    player.world.hung = 1
    player.tick()

    assert player.others == [Restart(kill=True)]
    player.take(player.driver.restarted(player.now))

    assert player.driver.transcript[-1] == {"snapshot": "restart"}
    assert player.done


def test_a_hang_that_was_cancelled_before_is_not_the_restarts() -> None:
    player = after_start(
        {"op": "promptAndCancel", "text": "Hi"}, {**PROMPT, "detach": True}, {"op": "restartAgent"}
    )
    player.world.hung = 1
    player.tick()
    player.answer({"stopReason": "cancelled"})

    player.tick()
    assert player.others == []
    player.world.hung = 2
    player.tick()
    assert player.others == [Restart(kill=False)]


def test_a_restart_between_prompts_waits_for_its_condition_only() -> None:
    step = {"op": "restartAgent", "wait": {"op": "waitForTurnEnd", "session": 1}}
    player = after_start(NEW, step)
    player.answer({"sessionId": "s2"})
    assert player.others == []
    player.world.logs["s1"] = [event("turn/start", turn=1), event("turn/end", turn=1)]
    player.tick()

    assert player.others == [Restart(kill=False)]
    with pytest.raises(StepFailedError, match="waited for the agent to restart; it did not"):
        player.tick(60)
