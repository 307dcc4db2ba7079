"""A session's events, and what they fold to: the history and all that a next turn needs. No I/O."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acp_example.usage import Totals

Event = dict[str, Any]

INTERRUPTED = "SESSION_RESUME_INTERRUPTED"
_ANNOUNCED = (
    f"Error [{INTERRUPTED}]: the session was interrupted before this call was known to have "
    "finished; it may have run, in part or not at all"
)
_NEVER_STARTED = f"Error [{INTERRUPTED}]: the session was interrupted before this call started"


@dataclass(frozen=True, slots=True)
class Node:
    """One message of the conversation, and the event it came from."""

    seq: int
    message: Mapping[str, Any]


class Conversation:
    """The one truth of a session: append events, ask what they add up to.

    A live session and a loaded one are the same thing, since both are folded from their events.
    """

    def __init__(
        self,
        *,
        now: Callable[[], int],
        new_id: Callable[[], str],
        events: Iterable[Event] = (),
        seed_length: int = 0,
    ) -> None:
        self._now = now
        self._seed_length = seed_length
        self.new_id = new_id
        self.events: list[Event] = []
        self.nodes: list[Node] = []
        self.header: Mapping[str, Any] | None = None
        self.context: Mapping[str, Any] | None = None
        self.turn = 0
        self.calls = 0
        self.totals = Totals()
        self.context_tokens: int | None = None
        """What the last call of a turn read and wrote; None until a provider reports it."""
        self.mode: Any = None
        """The permission mode that was chosen last."""
        self.chosen: Mapping[str, Any] = {}
        """The model that was chosen last."""
        self.open_turn: int | None = None
        self.open_step: int | None = None
        self.compacting: Sequence[Node] | None = None
        """The history as it was when the compaction began that has not ended."""
        self._begun: dict[tuple[int, int, str], int] = {}
        for event in events:
            self.apply(event)

    def record(self, kind: str, data: Mapping[str, Any], **envelope: object) -> Event:
        """Append an event of now and return it."""
        event = {"type": kind, "seq": len(self.events), "time": self._now(), "data": data}
        event.update(envelope)
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        """Take in an event that has its place already."""
        self.events.append(event)
        fold = _FOLDS.get(event["type"])
        if fold is not None:
            fold(self, event, event["data"])

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The history a model is shown: every call with its result, nothing blank."""
        return paired([node.message for node in self.nodes])

    @property
    def last_finished(self) -> int:
        """How many events there were when the last turn ended; a fork starts from these."""
        for index in range(len(self.events) - 1, -1, -1):
            if self.events[index]["type"] == "turn/end":
                return index + 1
        return 0

    def call_seq(self, turn: int, step: int, call_id: str) -> int | None:
        """Return the number of the event that announced a call."""
        return self._begun.get((turn, step, call_id))

    def repair(self) -> list[Event]:
        """Close what a crash left open and return the events that do it; none the second time."""
        if self.open_turn is None:
            return []
        turn, step = self.open_turn, self.open_step
        time = self.events[-1]["time"]
        begun = len(self.events)
        for call in unanswered([node.message for node in self.nodes]):
            self._repair_call(turn, step or 0, call)
        if step is not None:
            self.record("step/end", {"turn": turn, "step": step})
        self.record("turn/end", {"turn": turn, "reason": {"kind": "interrupted"}})
        for event in self.events[begun:]:
            event["time"] = time
        return self.events[begun:]

    def _repair_call(self, turn: int, step: int, call: Mapping[str, Any]) -> None:
        seq = self.call_seq(turn, step, call["id"])
        message = result_message(
            message_id=self.new_id(),
            call_id=call["id"],
            content=[{"type": "text", "text": _NEVER_STARTED if seq is None else _ANNOUNCED}],
            is_error=True,
        )
        self.record(
            "tool/result",
            {
                "turn": turn,
                "step": step,
                "message": message,
                "error": {"name": "ToolError", "code": INTERRUPTED},
            },
            sourceEventSeqs=[] if seq is None else [seq],
            surfaceOp="append",
        )


def result_message(
    *, message_id: str, call_id: str, content: Sequence[Mapping[str, Any]], is_error: bool
) -> dict[str, Any]:
    """Build the message that answers a call."""
    block = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": list(content),
        "isError": is_error,
    }
    return {
        "id": message_id,
        "role": "user",
        "content": [block],
        "source": {"kind": "tool", "callId": call_id},
    }


def unanswered(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the last assistant message that have no result after it."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message["role"] == "assistant":
            return [call for call in _calls(message) if call["id"] not in answered]
        answered.update(block["toolCallId"] for block in _results(message))
    return []


def paired(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Give every call exactly one result, right after it; the identity where that holds already.

    A call id counts within its own answer: a later answer may use it again.
    """
    groups: list[tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]]] = []
    open_calls: dict[str, Mapping[str, Any]] = {}
    for message in messages:
        results = _results(message)
        if results:
            # The latest duplicate wins; a result without a call has nothing to answer.
            open_calls.update(
                {r["toolCallId"]: message for r in results if r["toolCallId"] in open_calls}
            )
        elif message["content"]:
            calls: dict[str, Mapping[str, Any]] = {c["id"]: {} for c in _calls(message)}
            if message["role"] == "assistant":
                open_calls = calls
            groups.append((message, calls))
    return [part for message, calls in groups for part in _with_results(message, calls)]


def _with_results(
    message: Mapping[str, Any], calls: Mapping[str, Mapping[str, Any]]
) -> Iterable[Mapping[str, Any]]:
    yield message
    for call_id, result in calls.items():
        yield result or result_message(
            message_id=f"{message.get('id', '')}:{call_id}",
            call_id=call_id,
            content=[{"type": "text", "text": _ANNOUNCED}],
            is_error=True,
        )


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [block for block in message["content"] if block["type"] == "tool-call"]


def _results(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [block for block in message["content"] if block["type"] == "tool-result"]


def _fold_surface(conversation: Conversation, event: Event, data: Mapping[str, Any]) -> None:
    message = data if event["type"] == "user/message" else data["message"]
    node = Node(event["seq"], message)
    operation = event.get("surfaceOp", "append")
    if operation == "append":
        conversation.nodes.append(node)
        return
    first, last = operation["start"], operation["end"]
    inside = [first <= known.seq <= last for known in conversation.nodes]
    place = inside.index(True) if True in inside else len(inside)
    kept = [known for known, gone in zip(conversation.nodes, inside, strict=True) if not gone]
    conversation.nodes = [*kept[:place], node, *kept[place:]]


def _fold_assistant(conversation: Conversation, event: Event, data: Mapping[str, Any]) -> None:
    _fold_surface(conversation, event, data)
    usage = data.get("usage")
    if usage is not None:
        conversation.context_tokens = Totals.of(usage).total


def _fold_chunk(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    if data["chunk"]["type"] == "usage":
        conversation.totals = conversation.totals.plus(data["chunk"]["usage"])


def _fold_compaction(conversation: Conversation, event: Event, _data: Mapping[str, Any]) -> None:
    begins = event["type"] == "compaction/start"
    conversation.compacting = list(conversation.nodes) if begins else None


def _fold_summary(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    # What was measured before a compaction says nothing about the history after it.
    conversation.context_tokens = None
    if "usage" in data:
        conversation.totals = conversation.totals.plus(data["usage"])


def _fold_turn_start(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    conversation.turn = conversation.open_turn = data["turn"]
    conversation.open_step = None


def _fold_turn_end(conversation: Conversation, _event: Event, _data: Mapping[str, Any]) -> None:
    conversation.open_turn = conversation.open_step = conversation.compacting = None


def _fold_step_start(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    conversation.open_step = data["step"]


def _fold_step_end(conversation: Conversation, _event: Event, _data: Mapping[str, Any]) -> None:
    conversation.open_step = None


def _fold_header(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    conversation.header = data["header"]


def _fold_context(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    conversation.context = data


def _fold_mode(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    conversation.mode = data["mode"]


def _fold_model(conversation: Conversation, _event: Event, data: Mapping[str, Any]) -> None:
    conversation.chosen = data


def _fold_call(conversation: Conversation, event: Event, _data: Mapping[str, Any]) -> None:
    if event["seq"] >= conversation._seed_length:  # noqa: SLF001  the folds are this class's own
        conversation.calls += 1


def _fold_tool_call(conversation: Conversation, event: Event, data: Mapping[str, Any]) -> None:
    key = (data["turn"], data["step"], data["callId"])
    conversation._begun[key] = event["seq"]  # noqa: SLF001  as above


_FOLDS: Mapping[str, Callable[[Conversation, Event, Mapping[str, Any]], None]] = {
    "user/message": _fold_surface,
    "assistant/message": _fold_assistant,
    "assistant/chunk": _fold_chunk,
    "tool/call": _fold_tool_call,
    "tool/result": _fold_surface,
    "turn/start": _fold_turn_start,
    "turn/end": _fold_turn_end,
    "step/start": _fold_step_start,
    "step/end": _fold_step_end,
    "request/header": _fold_header,
    "request/context": _fold_context,
    "llm/call": _fold_call,
    "compaction/start": _fold_compaction,
    "compaction/summary": _fold_summary,
    "compaction/end": _fold_compaction,
    "permission/mode": _fold_mode,
    "session/model": _fold_model,
}
