"""Small changes of an agent's behaviour, and of its fixture: each is caught, and named."""

import json
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import mutant_agent
import pytest
from kit import START, add_scenario, make_suite, refreshed, replay, say, session_log, use

from snapshot_harness.causes import render
from snapshot_harness.suite import Scenario, Suite

MUTANT = Path(__file__).with_name("mutant_agent.py")
PROMPTS = [("Hi", 1), ("You", 2), ("Bye", 1)]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Make two sessions, three prompts, two tools; refreshed, so that it passes."""
    made = make_suite(tmp_path_factory.mktemp("suite"), command=["{python}", str(MUTANT)])
    prompts = [{"op": "prompt", "text": text, "session": session} for text, session in PROMPTS]
    calls = [[use("echo one", "echo two"), say("Done ", "here.")], [say("end")]]
    scenario = add_scenario(made, steps=[*START, {"op": "newSession"}, *prompts], turns=calls)
    other = session_log([[say("two")]], "2")
    (scenario.directory / "session.1.jsonl").write_text(other)
    assert replay(made, refreshed(made, scenario)).outcome == "passed"
    return made


def first_line(suite: Suite, scenario: Scenario) -> str:
    """Return what a person reads first: a fault, else the first cause and its path."""
    report = replay(suite, scenario)
    faults = [problem for problem in report.problems if problem.startswith("replay fault")]
    if faults:
        return faults[0].split("\n")[0]
    if report.causes:
        cause = report.causes[0]
        return short(render([cause]).split("\n")[0] + (f" @ {cause.path}" if cause.path else ""))
    return report.problems[0].split("\n")[0] if report.problems else report.outcome


def short(line: str) -> str:
    """Return a line as the tables spell it: OUT and LOG for the files, s1 t2 p3 for the place."""
    for long, brief in (
        ("stdout.expected.jsonl", "OUT"),
        ("session.jsonl", "LOG"),
        (": session 1", ": s1"),
        (": session 2", ": s2"),
        (", turn ", " t"),
        (", step ", " p"),
        ("update agent_message_chunk", "a chunk"),
        ("tool_call_update differs", "tool differs"),
        (" @ params.update.", " @ …"),
        (" @ data.message.", " @ …"),
        (" after this line", ""),
        (" came in another place", " moved"),
        ("its block-end: the fixture was edited", "its end"),
    ):
        line = line.replace(long, brief)
    return line


AGENT = {
    "chunk altered": "OUT:8: s1 t1: a chunk differs @ …content.text",
    "chunk in another case of its kind": "OUT:8: s1 t1: a chunk differs @ …content.type",
    "chunk as thought": "OUT:8: s1 t1: a chunk differs @ …sessionUpdate",
    "chunk with a field too many": "OUT:8: s1 t1: a chunk differs @ …extra",
    "chunk of a session nobody knows": "OUT:11: s2 t1: swapped id in a chunk @ params.sessionId",
    "chunk without its session": "OUT:8: s1 t1: a chunk differs @ params.sessionId",
    "chunk with a wrong directory": "OUT:8: s1 t1: a chunk differs @ …content.text",
    "frame of another version": "OUT:8: s1 t1: a chunk differs @ jsonrpc",
    "frame with version null": "OUT:8: s1 t1: a chunk differs @ jsonrpc",
    "stop reason changed": "OUT:10: s1 t1: answer differs @ result.stopReason",
    "stop with a field too many": "OUT:10: s1 t1: answer differs @ result.usage",
    "tool failed": "OUT:5: s1 t1 p1: update tool differs @ …status",
    "tool renamed": "OUT:4: s1 t1 p1: update tool_call differs @ …title",
    "tool with another id": "OUT:5: s1 t1 p1: update tool differs @ …toolCallId",
    "tool output altered": "OUT:5: s1 t1 p1: update tool differs @ …content[0].content.text",
    "tool output gone": "OUT:5: s1 t1 p1: update tool differs @ …content[0]",
    "protocol version two": "OUT:1: answer differs @ result.protocolVersion",
    "protocol version true": "OUT:1: answer differs @ result.protocolVersion",
    "protocol version as float": "OUT:1: answer differs @ result.protocolVersion",
    "capability gone": "OUT:1: answer differs @ result.agentCapabilities.loadSession",
    "capability off": "OUT:1: answer differs @ result.agentCapabilities.loadSession",
    "chunk dropped": "OUT:8: s1 t1: a chunk is missing",
    "chunk sent twice": "OUT:8: s1 t1: unexpected a chunk",
    "announcement dropped": "OUT:4: s1 t1 p1: update tool_call is missing",
    "completion dropped": "OUT:5: s1 t1 p1: update tool_call_update is missing",
    "completion sent twice": "OUT:5: s1 t1 p1: unexpected update tool_call_update",
    "unknown notification": "OUT:7: unexpected fake/new",
    "chunks exchanged": "OUT:8: s1 t1: a chunk moved",
    "completion before announcement": "OUT:4: s1 t1 p1: update tool_call moved",
    "text before the tools": "OUT:7: s1 t1 p1: update tool_call_update moved",
    "chunk after the answer": "OUT:9: s1 t1: a chunk moved",
    "chunk split": "OUT:8: s1 t1: a chunk differs @ …content.text",
    "update too many": "OUT:8: s1 t1: unexpected update usage_update",
    "chunk sent to the other session": "OUT:11: s2 t1: swapped id in a chunk @ params.sessionId",
    "no tool/result": "LOG:14: s1 t1 p1: tool/result is missing",
    "two tool/result": "LOG:14: s1 t1 p1: unexpected tool/result",
    "no tool/call": "LOG:13: s1 t1 p1: tool/call is missing",
    "two tool/call": "LOG:13: s1 t1 p1: unexpected tool/call",
    "no turn/end": "LOG:27: s1 t1 p2: turn/end is missing",
    "two turn/end": "LOG:27: s1 t1 p2: unexpected turn/end",
    "no step/start": "LOG:4: s1 t1 p1: step/start is missing",
    "two step/start": "LOG:4: s1 t1 p1: unexpected step/start",
    "no request/header": "LOG:5: s1 t1 p1: request/header is missing",
    "two request/header": "LOG:5: s1 t1 p1: unexpected request/header",
    "no llm/call": "LOG:6: s1 t1 p1: llm/call is missing",
    "two llm/call": "LOG:6: s1 t1 p1: unexpected llm/call",
    "result altered": "LOG:14: s1 t1 p1: tool/result differs @ …content[0].content[0].text",
    "result of another call": "LOG:14: s1 t1 p1: tool/result differs @ …content[0].toolCallId",
    "result with a field too many": "LOG:14: s1 t1 p1: tool/result differs @ data.error",
    "result by the model": "LOG:14: s1 t1 p1: tool/result differs @ …role",
    "call of another tool": "LOG:13: s1 t1 p1: tool/call differs @ data.name",
    "call with other arguments": "LOG:13: s1 t1 p1: tool/call differs @ data.arguments",
    "call with another id": "LOG:13: s1 t1 p1: tool/call differs @ data.callId",
    "turn ended otherwise": "LOG:27: s1 t1 p2: turn/end differs @ data.reason.kind",
    "turn of another number": "LOG:27: s1 t1 p2: turn/end differs @ data.turn",
    "turn as float": "LOG:2: s1 t1: turn/start differs @ data.turn",
    "step of another number": "LOG:17: s1 t1 p1: step/end differs @ data.step",
    "user said something else": "LOG:3: s1 t1: user/message differs @ data.content[0].text",
    "message without blocks": "LOG:12: s1 t1 p1: assistant/message differs @ …content[0]",
    "message marked interrupted": "LOG:12: s1 t1 p1: assistant/message differs @ data.interrupted",
    "header with another reason": "LOG:5: s1 t1 p1: request/header differs @ data.reason",
    "event that may not be skipped": "LOG:6: s1 t1 p1: llm/call differs @ ignorable",
    "chunk logged otherwise": "LOG:7: s1 t1 p1: assistant/chunk differs @ data.chunk.index",
    "event too many": "LOG:26: s1 t1 p2: unexpected session/title",
    "chunk not logged": "LOG:7: s1 t1 p1: assistant/chunk is missing",
    "reference too many": "LOG:27: s1 t1 p2: turn/end differs @ sourceEventSeqs",
    "result before its call": "LOG:13: s1 t1 p1: tool/call moved",
    "one id for all messages": "LOG:12: s1 t1 p1: swapped id in assistant/message @ …id",
    "log of another directory": "LOG:1: s1: session differs @ cwd",
    "log of another version": "LOG:1: s1: session differs @ version",
    "log of a child": "LOG:1: s1: session differs @ delegationDepth",
    "log of another lineage": "LOG:1: s1: this session is missing",
    "log with a parent": "LOG:1: s1: session differs @ parentSession",
    "log with a field too many": "LOG:1: s1: session differs @ extra",
}


def test_every_mutation_of_the_agent_is_in_the_table() -> None:
    assert list(AGENT) == list(mutant_agent.names())
    assert len(AGENT) >= 60


@pytest.mark.parametrize("name", AGENT)
def test_a_change_of_the_agents_behaviour_is_caught(suite: Suite, name: str) -> None:
    file = suite.file.model_copy(update={"env": {"MUTATE": name}})

    assert first_line(Suite(suite.path, file), Scenario(suite.directory / "one")) == AGENT[name]


Edit = Callable[[Path], None]


def edits(file: str, old: str, new: str, *, count: int = 1) -> Edit:
    """Replace a text, which must be there."""

    def edit(directory: Path) -> None:
        text = (directory / file).read_text()
        assert old in text
        (directory / file).write_text(text.replace(old, new, count))

    return edit


def lines(file: str, change: Callable[[list[str]], list[str]]) -> Edit:
    """Change the list of a file's lines."""

    def edit(directory: Path) -> None:
        changed = change((directory / file).read_text().splitlines(keepends=True))
        (directory / file).write_text("".join(changed))

    return edit


def without(number: int) -> Callable[[list[str]], list[str]]:
    return lambda those: [*those[: number - 1], *those[number:]]


def doubled(number: int) -> Callable[[list[str]], list[str]]:
    return lambda those: [*those[:number], those[number - 1], *those[number:]]


def exchanged(number: int) -> Callable[[list[str]], list[str]]:
    return lambda those: [
        *those[: number - 1],
        those[number],
        those[number - 1],
        *those[number + 1 :],
    ]


def reordered_keys(line: str) -> str:
    value = json.loads(line)
    turned = {key: value[key] for key in reversed(value)}
    return json.dumps(turned, separators=(",", ":"), ensure_ascii=False) + "\n"


LOG, CHILD, OUT = "session.jsonl", "session.1.jsonl", "stdout.expected.jsonl"
FIXTURE: dict[str, tuple[Edit, str]] = {
    "a character of a text delta": (
        edits(LOG, '"text":"Done "', '"text":"Dome "'),
        "LOG:21: s1 t1 p2: the deltas of block 0 don't join to its end @ data.chunk.text",
    ),
    "a character of a block's end": (
        edits(LOG, '"text":"Done here."', '"text":"Done hare."'),
        "LOG:22: s1 t1 p2: the deltas of block 0 don't join to its end @ data.chunk.text",
    ),
    "an argument of a tool call": (
        edits(LOG, "echo one", "echo 1ne"),
        "LOG:12: s1 t1 p1: assistant/message differs @ …content[0].arguments",
    ),
    "a recorded call removed": (
        lines(LOG, lambda those: those[:18] + those[25:]),
        "replay fault 'exhausted': call 3 of 2",
    ),
    "a recorded call too many": (
        lines(LOG, lambda those: [*those, *those[18:24]]),
        "LOG:39: s1 t1 p2: llm/call is missing",
    ),
    "the log of a session removed": (
        lambda directory: (directory / CHILD).unlink(),
        "replay fault 'exhausted': call 1 of 0",
    ),
    "a log that is not there": (
        lambda directory: (directory / LOG).unlink(),
        "suite/one/session.jsonl: the file is missing",
    ),
    "the output of a tool": (
        edits(LOG, '"text":"one\\n"', '"text":"one"'),
        "LOG:14: s1 t1 p1: tool/result differs @ …content[0].content[0].text",
    ),
    "an id exchanged": (
        edits(LOG, '"id":"{{message:3}}"', '"id":"{{message:2}}"'),
        "LOG:14: s1 t1 p1: swapped id in tool/result @ …id",
    ),
    "the directory of a log": (
        edits(LOG, '"cwd":"{{cwd}}"', '"cwd":"{{home}}"'),
        "LOG:1: s1: session differs @ cwd",
    ),
    "the lineage of a log": (
        edits(CHILD, '"lineage":"2"', '"lineage":"3"'),
        "session.1.jsonl:1: session 3: this session is missing",
    ),
    "the version of a log": (
        edits(LOG, '"version":1', '"version":0'),
        "LOG:1: s1: session differs @ version",
    ),
    "a turn as float": (
        edits(LOG, '"data":{"turn":1}', '"data":{"turn":1.0}'),
        "LOG:2: s1: turn/start differs @ data.turn",
    ),
    "a field removed": (
        edits(LOG, ',"ignorable":true', ""),
        "LOG:6: s1 t1 p1: llm/call differs @ ignorable",
    ),
    "a field too many": (
        edits(LOG, '"reason":"initial"', '"reason":"initial","x":null'),
        "LOG:5: s1 t1 p1: request/header differs @ data.x",
    ),
    "an event removed": (lines(LOG, without(17)), "LOG:16: s1 t1 p1: unexpected step/end"),
    "an event doubled": (lines(LOG, doubled(17)), "LOG:18: s1 t1 p1: step/end is missing"),
    "events exchanged": (lines(LOG, exchanged(16)), "LOG:16: s1 t1 p1: step/end moved"),
    "a line of a log cut": (
        lines(LOG, lambda those: [*those[:-1], those[-1][:20]]),
        "suite/one/session.jsonl:38: column 21: this is not JSON: unexpected end of data",
    ),
    "a text of the transcript": (
        edits(OUT, '"Done "', '"Done"'),
        "OUT:8: s1 t1: a chunk differs @ …content.text",
    ),
    "a status of the transcript": (
        edits(OUT, '"pending"', '"in_progress"'),
        "OUT:4: s1 t1 p1: update tool_call differs @ …status",
    ),
    "a stop reason": (
        edits(OUT, "end_turn", "refusal"),
        "OUT:10: s1 t1: answer differs @ result.stopReason",
    ),
    "a session exchanged": (
        edits(OUT, '"sessionId":"{{session:2}}","update"', '"sessionId":"{{session:1}}","update"'),
        "OUT:11: s1 t2: swapped id in a chunk @ params.sessionId",
    ),
    "a line of the transcript removed": (
        lines(OUT, without(8)),
        "OUT:7: s1 t1: unexpected a chunk",
    ),
    "a line of the transcript doubled": (
        lines(OUT, doubled(8)),
        "OUT:9: s1 t1: a chunk is missing",
    ),
    "lines of the transcript exchanged": (lines(OUT, exchanged(8)), "OUT:8: s1 t1: a chunk moved"),
    "a number of the transcript as text": (
        edits(OUT, '"protocolVersion":1', '"protocolVersion":"1"'),
        "OUT:1: answer differs @ result.protocolVersion",
    ),
    "the transcript empty": (lines(OUT, lambda _: []), "OUT: unexpected answer at the beginning"),
    "a transcript that is not there": (
        lambda directory: (directory / OUT).unlink(),
        "suite/one/stdout.expected.jsonl: the file is missing",
    ),
    "a line of the transcript cut": (
        lines(OUT, lambda those: [*those[:-1], those[-1][:20]]),
        "suite/one/stdout.expected.jsonl:14: column 21: this is not JSON: unexpected end of data",
    ),
}


@pytest.mark.parametrize("name", FIXTURE)
def test_a_change_of_the_fixture_is_caught(suite: Suite, tmp_path: Path, name: str) -> None:
    shutil.copytree(suite.directory, tmp_path / "suite")
    edit, expected = FIXTURE[name]
    edit(tmp_path / "suite" / "one")
    copied = Suite(tmp_path / "suite" / "suite.toml", suite.file)

    line = first_line(copied, Scenario(copied.directory / "one"))

    assert line.replace(f"{tmp_path}/", "") == expected


def persisted(directory: Path) -> None:
    """Turn the logs into what an agent elsewhere persisted: ids, times, places, no tokens."""
    ids: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return ids.setdefault(match[0], str(uuid.uuid4()))

    for file in (LOG, CHILD):
        text = re.sub(r"\{\{(?:session|message):\d+\}\}", named, (directory / file).read_text())
        first, *rest = map(json.loads, text.replace("{{cwd}}", "/home/someone/here").splitlines())
        first = {key: value for key, value in first.items() if key != "tokens"}
        records = [first | {"createdAt": 1700000000000 + len(file)}]
        for seq, one in enumerate(rest):
            records.append({"type": one["type"], "seq": seq, "time": 1700000000000 + seq} | one)
        (directory / file).write_text("".join(json.dumps(one) + "\n" for one in records))


SAME: dict[str, Edit] = {
    "logs as they were persisted elsewhere": persisted,
    "keys in another order": lines(OUT, lambda those: [reordered_keys(line) for line in those]),
    "spaces in a line": edits(OUT, '"result":', '"result" : '),
    "other numbers for the same ids": edits(LOG, "{{message:", "{{message:1", count=99),
    "other JSON-RPC ids": lines(
        OUT, lambda those: [re.sub(r'"id":(\d)', r'"id":5\1', line) for line in those]
    ),
    "a blank line": lines(OUT, lambda those: ["\n", *those]),
}


@pytest.mark.parametrize("name", SAME)
def test_what_says_the_same_otherwise_still_passes(suite: Suite, tmp_path: Path, name: str) -> None:
    shutil.copytree(suite.directory, tmp_path / "suite")
    SAME[name](tmp_path / "suite" / "one")
    copied = Suite(tmp_path / "suite" / "suite.toml", suite.file)

    assert first_line(copied, Scenario(copied.directory / "one")) == "passed"


def test_refresh_turns_persisted_logs_into_the_committed_ones(suite: Suite, tmp_path: Path) -> None:
    shutil.copytree(suite.directory, tmp_path / "suite")
    one = tmp_path / "suite" / "one"
    persisted(one)

    refreshed(Suite(tmp_path / "suite" / "suite.toml", suite.file), Scenario(one))

    for file in (LOG, CHILD, OUT):
        assert (one / file).read_bytes() == (suite.directory / "one" / file).read_bytes()
