"""The fake agent with one small change of behaviour, named by $MUTATE."""

import copy
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Frame = dict[str, Any]
Event = tuple[str, Any, dict[str, Any]]
"""Type, data and the rest of an event, before the log gives it its envelope."""

FRAMES: dict[str, Callable[[Frame], list[Frame]]] = {}
EVENTS: dict[str, Callable[[Event], list[Event]]] = {}
HEADERS: dict[str, Callable[[Frame], Frame]] = {}
HELD: list[Any] = []
SEEN: list[Any] = []


# what a frame is


def update(frame: Frame) -> Frame:
    found: Frame = frame.get("params", {}).get("update", {})
    return found


def is_text(frame: Frame, text: str) -> bool:
    return bool(update(frame).get("content") == {"type": "text", "text": text})


def is_tool(frame: Frame, call: str, status: str) -> bool:
    one = update(frame)
    return one.get("toolCallId") == call and one.get("status") == status


def is_stop(frame: Frame) -> bool:
    return "stopReason" in frame.get("result", {})


def is_initialized(frame: Frame) -> bool:
    return "protocolVersion" in frame.get("result", {})


def on(
    name: str, where: Callable[[Frame], bool]
) -> Callable[[Callable[[Frame], object]], Callable[[Frame], object]]:
    """Declare a mutation of the first frame that is `where`: it returns what goes out instead."""

    def declare(change: Callable[[Frame], object]) -> Callable[[Frame], object]:
        def mutate(frame: Frame) -> list[Frame]:
            if SEEN or not where(frame):
                return [frame]
            SEEN.append(frame)
            changed = change(frame)
            return changed if isinstance(changed, list) else [frame]

        FRAMES[name] = mutate
        return change

    return declare


def hold(name: str, where: Callable[[Frame], bool], until: Callable[[Frame], bool]) -> None:
    """Declare a mutation that sends one frame only after another."""

    def mutate(frame: Frame) -> list[Frame]:
        if not SEEN and where(frame):
            SEEN.append(frame)
            HELD.append(frame)
            return []
        if HELD and until(frame):
            return [frame, HELD.pop()]
        return [frame]

    FRAMES[name] = mutate


def chunk(text: str) -> Callable[[Frame], bool]:
    return lambda frame: is_text(frame, text)


def tool(call: str, status: str) -> Callable[[Frame], bool]:
    return lambda frame: is_tool(frame, call, status)


def setting(path: str, value: object) -> Callable[[Any], None]:
    """Return a change that sets one value; `…` removes it."""
    *parents, last = path.split(".")

    def change(target: Any) -> None:  # noqa: ANN401  a frame or an event
        for part in parents:
            target = target[int(part) if part.isdigit() else part]
        if value is ...:
            del target[last]
        else:
            target[last] = value

    return change


for _name, _where, _path, _value in (
    ("chunk altered", chunk("Done "), "params.update.content.text", "done "),
    ("chunk in another case of its kind", chunk("Done "), "params.update.content.type", "Text"),
    ("chunk as thought", chunk("Done "), "params.update.sessionUpdate", "agent_thought_chunk"),
    ("chunk with a field too many", chunk("Done "), "params.update.extra", None),
    ("chunk of a session nobody knows", chunk("two"), "params.sessionId", str(uuid.uuid4())),
    ("chunk without its session", chunk("Done "), "params.sessionId", ...),
    ("chunk with a wrong directory", chunk("Done "), "params.update.content.text", "/tmp/x "),
    ("frame of another version", chunk("Done "), "jsonrpc", "2.1"),
    ("frame with version null", chunk("Done "), "jsonrpc", None),
    ("stop reason changed", is_stop, "result.stopReason", "max_tokens"),
    ("stop with a field too many", is_stop, "result.usage", {}),
    ("tool failed", tool("1.1.1", "completed"), "params.update.status", "failed"),
    ("tool renamed", tool("1.1.1", "pending"), "params.update.title", "echo"),
    ("tool with another id", tool("1.1.1", "completed"), "params.update.toolCallId", "1.1.9"),
    ("tool output altered", tool("1.1.1", "completed"), "params.update.content.0.content.text", ""),
    ("tool output gone", tool("1.1.1", "completed"), "params.update.content", []),
    ("protocol version two", is_initialized, "result.protocolVersion", 2),
    ("protocol version true", is_initialized, "result.protocolVersion", True),
    ("protocol version as float", is_initialized, "result.protocolVersion", 1.0),
    ("capability gone", is_initialized, "result.agentCapabilities.loadSession", ...),
    ("capability off", is_initialized, "result.agentCapabilities.loadSession", False),
):
    on(_name, _where)(setting(_path, _value))

on("chunk dropped", chunk("Done "))(lambda _: [])
on("chunk sent twice", chunk("Done "))(lambda frame: [frame, frame])
on("announcement dropped", tool("1.1.1", "pending"))(lambda _: [])
on("completion dropped", tool("1.1.1", "completed"))(lambda _: [])
on("completion sent twice", tool("1.1.1", "completed"))(lambda frame: [frame, frame])
on("unknown notification", chunk("Done "))(lambda frame: [{"method": "fake/new"}, frame])
hold("chunks exchanged", chunk("Done "), chunk("here."))
hold("completion before announcement", tool("1.1.1", "pending"), tool("1.1.1", "completed"))
hold("text before the tools", tool("1.1.2", "completed"), chunk("Done "))
hold("chunk after the answer", chunk("here."), is_stop)


@on("chunk split", chunk("Done "))
def _split(frame: Frame) -> list[Frame]:
    parts = copy.deepcopy(frame), copy.deepcopy(frame)
    for part, text in zip(parts, ("Do", "ne "), strict=True):
        update(part)["content"]["text"] = text
    return list(parts)


@on("update too many", chunk("Done "))
def _usage(frame: Frame) -> list[Frame]:
    more = copy.deepcopy(frame)
    more["params"]["update"] = {"sessionUpdate": "usage_update", "used": 1}
    return [frame, more]


def _to_the_first_session(frame: Frame) -> list[Frame]:
    session = frame.get("params", {}).get("sessionId")
    if session is not None and not HELD:
        HELD.append(session)
    if is_text(frame, "two"):
        frame["params"]["sessionId"] = HELD[0]
    return [frame]


FRAMES["chunk sent to the other session"] = _to_the_first_session


# the log


def event(name: str, kind: str) -> Callable[[Callable[[Event], object]], None]:
    """Declare a mutation of the first event of a type: it returns what is logged instead."""

    def declare(change: Callable[[Event], object]) -> None:
        def mutate(one: Event) -> list[Event]:
            if SEEN or one[0] != kind:
                return [one]
            SEEN.append(one)
            changed = change(one)
            return changed if isinstance(changed, list) else [one]

        EVENTS[name] = mutate

    return declare


for _kind in ("tool/result", "tool/call", "turn/end", "step/start", "request/header", "llm/call"):
    event(f"no {_kind}", _kind)(lambda _: [])
    event(f"two {_kind}", _kind)(lambda one: [one, one])

for _name, _kind, _path, _value in (
    ("result altered", "tool/result", "1.message.content.0.content.0.text", "other"),
    ("result of another call", "tool/result", "1.message.content.0.toolCallId", "c9"),
    ("result with a field too many", "tool/result", "1.error", None),
    ("result by the model", "tool/result", "1.message.role", "assistant"),
    ("call of another tool", "tool/call", "1.name", "rerun"),
    ("call with other arguments", "tool/call", "1.arguments", "{}"),
    ("call with another id", "tool/call", "1.callId", "c7"),
    ("turn ended otherwise", "turn/end", "1.reason.kind", "max-tokens"),
    ("turn of another number", "turn/end", "1.turn", 7),
    ("turn as float", "turn/start", "1.turn", 1.0),
    ("step of another number", "step/end", "1.step", 4),
    ("user said something else", "user/message", "1.content.0.text", "Ho"),
    ("message without blocks", "assistant/message", "1.message.content", []),
    ("message marked interrupted", "assistant/message", "1.interrupted", True),
    ("header with another reason", "request/header", "1.reason", "resume"),
    ("event that may not be skipped", "llm/call", "2.ignorable", False),
    ("chunk logged otherwise", "assistant/chunk", "1.chunk.index", 9),
):
    event(_name, _kind)(setting(_path, _value))

event("event too many", "turn/end")(lambda one: [("session/title", {"title": "t"}, {}), one])
event("chunk not logged", "assistant/chunk")(lambda _: [])
event("reference too many", "turn/end")(lambda one: [(one[0], one[1], {"sourceEventSeqs": [0]})])


def _result_before_call(one: Event) -> list[Event]:
    if one[0] == "tool/call" and not SEEN:
        SEEN.append(one)
        HELD.append(one)
        return []
    return [one, HELD.pop()] if HELD and one[0] == "tool/result" else [one]


def _one_message_id(one: Event) -> list[Event]:
    if one[0] == "user/message" and not HELD:
        HELD.append(one[1]["id"])
    elif one[0] == "assistant/message":
        one[1]["message"]["id"] = HELD[0]
    return [one]


EVENTS["result before its call"] = _result_before_call
EVENTS["one id for all messages"] = _one_message_id

for _name, _key, _value in (
    ("log of another directory", "cwd", "/"),
    ("log of another version", "version", 0),
    ("log of a child", "delegationDepth", 1),
    ("log of another lineage", "lineage", "7"),
    ("log with a parent", "parentSession", "0a1b2c3d-0000-4000-8000-00000000000a"),
    ("log with a field too many", "extra", {}),
):
    HEADERS[_name] = lambda header, key=_key, value=_value: header | {key: value}  # type: ignore[misc]


def main() -> None:
    """Run the fake agent, changed."""
    path = Path(__file__).with_name("fake_agent.py")
    source = path.read_text().removesuffix("\n\nmain()\n")
    world: dict[str, Any] = {"__name__": "fake_agent", "__file__": str(path)}
    exec(compile(source, path, "exec"), world)  # noqa: S102  our own file
    name = os.environ.get("MUTATE", "")
    agent, log = world["Agent"], world["Log"]
    if name in FRAMES:
        send = agent.send

        def mutated(self: object, frame: Frame) -> None:
            for one in FRAMES[name](copy.deepcopy({"jsonrpc": "2.0", **frame})):
                send(self, one)

        agent.send = mutated
    elif name in EVENTS:
        add = log.add

        def logged(self: object, kind: str, data: object, **rest: object) -> None:
            for changed, value, more in EVENTS[name]((kind, copy.deepcopy(data), dict(rest))):
                add(self, changed, value, **more)

        log.add = logged
    elif name:
        line = log._line  # noqa: SLF001  the fake agent is ours

        def written(self: object, value: Frame) -> None:
            is_header = value["type"] == "session" and not SEEN
            SEEN.append(value)
            line(self, HEADERS[name](value) if is_header else value)

        log._line = written  # noqa: SLF001  the fake agent is ours
    world["main"]()


def names() -> Iterator[str]:
    """Yield every mutation."""
    yield from (*FRAMES, *EVENTS, *HEADERS)


if __name__ == "__main__":
    main()
