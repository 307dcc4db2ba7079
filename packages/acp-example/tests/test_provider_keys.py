"""What the provider sends to tell who asks: keys, headers, the request line."""

from pathlib import Path

import pytest
from chat_server import (
    HELLO,
    KEY,
    Exchange,
    streamed,
)


def test_a_request_names_its_key_and_asks_for_a_stream(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), base_path="/v1/", headers={"X-Team": "tools"})

    assert outcome.text == "hello"
    assert outcome.target == "POST /v1/chat/completions HTTP/1.1"
    assert outcome.headers["authorization"] == f"Bearer {KEY}"
    assert outcome.headers["accept"] == "text/event-stream"
    assert outcome.headers["content-type"] == "application/json"
    assert outcome.headers["x-team"] == "tools"
    assert outcome.body == {
        "model": "deepseek-chat",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_configured_header_replaces_the_key(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), headers={"Authorization": "Basic eA=="})

    assert outcome.headers["authorization"] == "Basic eA=="


def test_a_missing_key_is_said_before_anything_is_sent(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), environment={"DEEPSEEK_API_KEY": " "})

    assert outcome.target == ""
    assert str(outcome.error) == (
        "AUTH: there is no key for DeepSeek: set DEEPSEEK_API_KEY, or configure key_env"
    )


@pytest.mark.parametrize("key", ["sk-1\nx", "sk-schlüssel"])
def test_a_key_that_no_header_can_carry_is_not_quoted(exchange: Exchange, key: str) -> None:
    outcome = exchange(streamed(HELLO), environment={"DEEPSEEK_API_KEY": key})

    assert str(outcome.error) == (
        "AUTH: DEEPSEEK_API_KEY holds a character that no HTTP header can carry"
    )


def test_a_key_may_stand_in_a_file(exchange: Exchange, tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    file.write_text("DEEPSEEK_API_KEY='from the file'\n")

    outcome = exchange(streamed(HELLO), environment={}, env_file=str(file))

    assert outcome.headers["authorization"] == "Bearer from the file"


@pytest.mark.parametrize("environment", [{"DEEPSEEK_API_KEY": ""}, {"DSH_SNAPSHOT": "record"}])
def test_a_file_gives_no_key_where_the_environment_decides(
    exchange: Exchange, tmp_path: Path, environment: dict[str, str]
) -> None:
    file = tmp_path / "keys.env"
    file.write_text("DEEPSEEK_API_KEY=from-the-file\n")

    outcome = exchange(streamed(HELLO), environment=environment, env_file=str(file))

    assert str(outcome.error) == (
        "AUTH: there is no key for DeepSeek: set DEEPSEEK_API_KEY, or configure key_env"
    )


def test_an_endpoint_without_a_key_gets_none(exchange: Exchange) -> None:
    outcome = exchange(streamed(HELLO), environment={}, key_env=None)

    assert outcome.text == "hello"
    assert "authorization" not in outcome.headers


def test_an_endpoint_from_the_environment_goes_without_a_key(exchange: Exchange) -> None:
    outcome = exchange(
        streamed(HELLO),
        environment={"LOCAL_URL": "{base_url}"},
        base_url="https://api.deepseek.com",
        base_url_env="LOCAL_URL",
    )

    assert outcome.text == "hello"
    assert "authorization" not in outcome.headers
