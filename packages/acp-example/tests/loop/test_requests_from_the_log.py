"""What a model was told can be built anew from the log alone, to the byte."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loop_bench import Bench, FakeTool, Json, Make, conversation, window
from loop_everything import everything

from acp_example import compaction
from acp_example.options import set_mode
from llm_replay.requests import RecordedRequest
from llm_replay.scripted_model import call, round_, say
from llm_replay.session_log import SessionLog

FULL: Json = {"inputTokens": 8000, "outputTokens": 0}


def rebuilt(log: SessionLog) -> list[bytes]:
    """Return each request of a session as its log tells it."""
    requests = []
    for place, event in enumerate(log.events):
        if event["type"] == "llm/call" and place >= log.header.seed_length:
            before = replace(log, events=log.events[:place])
            requests.append(_request(before, event["data"]["purpose"]))
    return requests


def _request(log: SessionLog, purpose: str) -> bytes:
    told = conversation(log)
    header: Mapping[str, Any] = told.header or {}
    if purpose == "compaction":
        messages: Json = compaction.request_messages(told.messages)
        return as_bytes(header["config"], compaction.SYSTEM, messages, [])
    return as_bytes(header["config"], header["system"], told.messages, header["tools"])


def as_bytes(config: Json, system: str | None, messages: Json, tools: Json) -> bytes:
    return json.dumps([config, system, messages, tools]).encode()


def sent(agent: Bench, lineage: str) -> list[bytes]:
    """Return each request of a session as the model got it."""
    return [
        as_bytes(config_of(request.original), request.system, request.messages, request.tools)
        for request in agent.model.requests
        if of(request) == lineage
    ]


def config_of(request: Json) -> Json:
    return {"provider": request.provider, "model": request.model}


def of(request: RecordedRequest) -> str:
    return request.lineage or "1"


def test_log_tells_every_request_to_the_byte(bench: Make) -> None:
    agent = everything(bench)

    assert len(agent.model.requests) == 7
    assert rebuilt(agent.log()) == sent(agent, "1")
    assert rebuilt(agent.log("1/2.1.1")) == sent(agent, "1/2.1.1")


def test_log_of_a_session_that_was_loaded_tells_its_requests_to_the_byte(bench: Make) -> None:
    agent = bench(
        round_(say("I look"), call("c", "look")),
        say("hello"),
        round_(call("d", "look"), usage=FULL),
        say("the summary"),
        say("done"),
        tools=[FakeTool("look", path_policy="write")],
    )
    window(agent.model, 10_000)
    agent.prompt("first")
    agent.reload()
    agent.prompt("second")
    set_mode(agent.session, "read-only")

    assert len(agent.model.requests) == 5
    assert rebuilt(agent.log()) == sent(agent, "1")
