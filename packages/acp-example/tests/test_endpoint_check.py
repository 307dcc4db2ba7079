"""The provider looks at an endpoint without asking a model anything."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from model_endpoint import KEY, Endpoint

from acp_example.findings import Finding
from acp_example.provider import ChatAdapter, Config


def checked(base_url: str, **config: Any) -> list[Finding]:  # noqa: ANN401  the plugin's keys
    parsed = Config.model_validate(
        {"base_url": base_url, "key_env": None, "models": [{"id": "m"}], **config}
    )
    return asyncio.run(ChatAdapter(parsed, environment={}).check())


def test_an_endpoint_without_a_key_is_looked_at_without_one(endpoint: Endpoint) -> None:
    assert checked(endpoint.url) == [
        Finding("key", "none, and none is needed"),
        Finding("endpoint", f"{endpoint.url} answers (200)"),
    ]
    assert endpoint.keys == [None]


def test_a_key_in_a_file_is_told_by_the_file(tmp_path: Path, endpoint: Endpoint) -> None:
    file = tmp_path / ".env"
    file.write_text(f"LOCAL_KEY={KEY}")

    key, reached = checked(endpoint.url, key_env="LOCAL_KEY", env_file=str(file))

    assert key == Finding("key", f"LOCAL_KEY from {file}")
    assert reached.hint is None
    assert endpoint.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("status", [401, 403])
def test_an_endpoint_that_refuses_the_key_is_told(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status

    assert checked(endpoint.url)[1] == Finding(
        "endpoint",
        f"{endpoint.url} refuses the key ({status})",
        "look at the variable that key_env names",
    )


def test_a_model_that_the_endpoint_does_not_list_is_told(endpoint: Endpoint) -> None:
    assert checked(endpoint.url, models=[{"id": "m"}, {"id": "x"}])[2:] == [
        Finding("endpoint", "it does not offer 'x'", "it offers m, n")
    ]


@pytest.mark.parametrize("answer", [{}, {"data": None}, {"data": [{}]}, [], "text"])
def test_an_endpoint_that_lists_nothing_is_taken_as_it_is(
    endpoint: Endpoint, answer: object
) -> None:
    endpoint.answer = answer
    endpoint.status = 404

    assert checked(endpoint.url)[1:] == [Finding("endpoint", f"{endpoint.url} answers (404)")]


def test_an_endpoint_that_is_not_there_is_told() -> None:
    assert checked("http://127.0.0.1:1")[1] == Finding(
        "endpoint",
        "http://127.0.0.1:1 does not answer: All connection attempts failed",
        "is the server running, and the base URL right?",
    )


def test_no_secret_of_url_or_headers_is_told() -> None:
    findings = checked(
        "http://someone:sk-in-the-url@127.0.0.1:9/v1",
        key_env="",
        headers={"x-api-key": "sk-in-a-header", "accept": "text"},
    )

    shown = "\n".join(map(str, findings))
    assert "http://[key]@127.0.0.1:9/v1 does not answer" in shown
    assert "sk-in" not in shown
