import json
from typing import Any

import pytest
from chat_server import chat_request
from pydantic import ValidationError

from acp_example.provider import Config
from acp_example.provider.request import chat_body, chat_messages, encode_body

TOOL = {"name": "ls", "description": "List.", "schema": {"type": "object"}}
PICTURE = {"type": "image", "attachment": {"mimeType": "image/png", "data": "eA=="}}
SEEING = {"id": "eyes", "input_modalities": ["text", "image"]}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def result(call_id: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": call_id, "content": list(blocks), "isError": False}


def body(*, config: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return chat_body(chat_request(**fields), Config.model_validate(config or {}))


def test_a_conversation_becomes_messages() -> None:
    messages = [
        user(text("one"), text("two")),
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "hm"},
                text("I look."),
                {"type": "tool-call", "id": "c1", "name": "ls", "arguments": '{"a":1}'},
                {"type": "tool-call", "id": "c2", "name": "ls", "arguments": " "},
            ],
        },
        user(result("c1", text("a"), text("b"))),
        user(result("c2"), text("and go on")),
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "id": "c3", "name": "ls", "arguments": "{}"}],
        },
        {"role": "system", "content": "a summary"},
    ]

    assert body(system="Be brief.", messages=messages)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one\ntwo"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "ls", "arguments": '{"a":1}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
        {"role": "user", "content": "and go on"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c3", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
            ],
        },
        {"role": "system", "content": "a summary"},
    ]


def test_thoughts_are_not_sent_back_where_a_server_refuses_them() -> None:
    messages = [{"role": "assistant", "content": [{"type": "reasoning", "text": "hm"}, text("x")]}]

    sent = body(messages=messages, config={"send_reasoning": False})["messages"]

    assert sent == [{"role": "assistant", "content": "x"}]


def test_pictures_go_to_models_that_see() -> None:
    messages = [user(text("look"), PICTURE), user(result("c1", text("a.png"), PICTURE))]
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}

    sent = body(model="eyes", messages=messages, config={"models": [SEEING]})["messages"]

    assert sent == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, part]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.png"},
        {"role": "user", "content": [part]},
    ]


def test_other_models_are_told_that_a_picture_was_left_out() -> None:
    messages = [user(text("look"), PICTURE), user(result("c1", PICTURE))]
    model = Config().model_named("deepseek-chat")
    left_out = "[an image, left out: this model reads text only]"

    assert chat_messages(chat_request(messages=messages), model=model) == [
        {"role": "user", "content": f"look\n{left_out}"},
        {"role": "tool", "tool_call_id": "c1", "content": left_out},
    ]


def test_tools_are_functions_with_their_schema() -> None:
    assert body(tools=[TOOL])["tools"] == [
        {
            "type": "function",
            "function": {"name": "ls", "description": "List.", "parameters": {"type": "object"}},
        }
    ]


@pytest.mark.parametrize(
    ("configured", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("ls", {"type": "function", "function": {"name": "ls"}}),
    ],
)
def test_a_configured_tool_choice_is_sent(configured: str, sent: object) -> None:
    assert body(tools=[TOOL], config={"tool_choice": configured})["tool_choice"] == sent


def test_a_forced_call_is_forced_in_the_first_step_only() -> None:
    later = [user(text("go")), user(result("c1", text("done")))]
    forced = {"tool_choice": "required"}

    assert "tool_choice" not in body(tools=[TOOL], messages=later, config=forced)
    assert "tool_choice" not in body(tools=[], config=forced)
    assert body(tools=[TOOL], messages=[], config=forced)["tool_choice"] == "required"
    plain = [{"role": "user", "content": "go"}]
    assert body(tools=[TOOL], messages=plain, config=forced)["tool_choice"] == "required"


def test_the_requests_own_tool_choice_comes_first() -> None:
    sent = body(tools=[TOOL], tool_choice="none", config={"tool_choice": "required"})

    assert sent["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("style", "effort", "sent"),
    [
        ("thinking", None, {}),
        ("thinking", "off", {"thinking": {"type": "disabled"}}),
        ("thinking", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("reasoning_effort", "off", {}),
        ("reasoning_effort", "low", {"reasoning_effort": "low"}),
    ],
)
def test_an_effort_is_spelled_as_the_endpoint_wants_it(
    style: str, effort: str | None, sent: dict[str, Any]
) -> None:
    plain = body()

    assert body(reasoning_effort=effort, config={"effort_style": style}) == {**plain, **sent}


def test_a_summary_is_made_without_thinking() -> None:
    thinker = {"id": "deepseek-chat", "reasoning_efforts": ["off", "high"]}

    sent = body(purpose="compaction", reasoning_effort="high", config={"models": [thinker]})

    assert sent["thinking"] == {"type": "disabled"}
    assert "thinking" not in body(purpose="compaction")


def test_the_output_cap_and_further_keys_go_along() -> None:
    config = {"models": [{"id": "m", "max_output_tokens": 64}], "body": {"temperature": 0}}

    sent = body(model="m", config=config)

    assert (sent["max_tokens"], sent["temperature"]) == (64, 0)


def test_half_a_surrogate_pair_does_not_break_the_request() -> None:
    data = encode_body(chat_request(system="a\ud83db"), Config())

    assert json.loads(data)["messages"][0]["content"] == "a?b"


def test_the_catalogue_says_what_each_model_is() -> None:
    config = Config.model_validate(
        {
            "models": [
                {
                    "id": "m",
                    "name": "Emm",
                    "context_window": 9,
                    "max_output_tokens": 3,
                    "input_modalities": ["text", "image"],
                    "reasoning_efforts": ["high"],
                },
                {"id": "n"},
            ]
        }
    )

    first, second = (model.info() for model in config.models)

    assert (first.id, first.name, first.context_window) == ("m", "Emm", 9)
    assert (first.max_output_tokens, first.reasoning_efforts) == (3, ("high",))
    assert first.input_modalities == ("text", "image")
    assert (second.name, second.context_window) == ("n", None)


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Config.model_validate({"base_ulr": "x"})


def test_a_retry_table_becomes_a_policy() -> None:
    config = Config.model_validate({"retry": {"max_retries": 2, "jitter_ratio": 0}})

    policy = config.retry.policy()

    assert (policy.max_retries, policy.jitter_ratio, policy.max_delay_ms) == (2, 0, 10_000)
