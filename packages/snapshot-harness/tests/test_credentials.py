import json

import pytest

from snapshot_harness.credentials import find_credentials, redact, secret_values

# Put together at run time, so that this file itself holds nothing that looks like one.
LOOKS = {
    "an API key": "sk-" + "a1B2" * 8,
    "an API key of another maker": "sk-ant-" + "a1B2" * 8,
    "a GitHub token": "ghp_" + "a1B2" * 9,
    "a GitHub token of the newer kind": "github_pat_" + "a1B2_" * 8,
    "a GitLab token": "glpat-" + "a1B2" * 6,
    "an AWS access key id": "AKIA" + "A1B2" * 4,
    "a Google API key": "AIza" + "a1B2c" * 7,
    "a Slack token": "xoxb-" + "123456789-" * 2 + "abc",
    "a Hugging Face token": "hf_" + "aBcD" * 8,
    "an npm token": "npm_" + "a1B2" * 9,
    "a PyPI token": "pypi-" + "a1B2" * 14,
    "a Stripe key": "sk_live_" + "a1B2" * 6,
    "a private key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "a JSON web token": ".".join(["eyJ" + "a1B2" * 5, "eyJ" + "a1B2" * 5, "a1B2" * 5]),
    "an authorization header": "Authorization: " + "Bearer " + "a1B2" * 6,
    "a password in a URL": "https://user:" + "hunter22" + "@example.com/",
}
HARMLESS = [
    "sk-short",
    "task-force-of-people-who-ask",
    "call_00_fkbBRJsUrGKd1pWVc4Gn8233",
    "0a1b2c3d-0000-4000-8000-00000000000a",
    "Authorization: Bearer {{token}}",
    "https://example.com/a:b@c",
    "https://user:{{password}}@example.com",
    "-----BEGIN CERTIFICATE-----",
    "the key is under the mat",
    "{{session:1}} {{cwd}}/a.py",
]


@pytest.mark.parametrize("kind", LOOKS)
def test_what_looks_like_a_credential_is_found_at_its_place(kind: str) -> None:
    text = f"line one\n  x={LOOKS[kind]} end"

    (found,) = find_credentials(text, {})

    assert (found.line, found.column) == (2, 5)
    assert kind.startswith(found.what)


@pytest.mark.parametrize("kind", LOOKS)
def test_a_credential_is_cut_out(kind: str) -> None:
    text = redact(f'{{"a":"{LOOKS[kind]}","b":1}}', {})

    assert LOOKS[kind] not in text
    assert text.startswith('{"a":"[')
    assert text.endswith('","b":1}')


@pytest.mark.parametrize("kind", LOOKS)
@pytest.mark.parametrize("levels", [1, 2, 3], ids=["JSON", "JSON in JSON", "thrice"])
@pytest.mark.parametrize("before", ["\n", "\t", "\r\n", "\x1b[0m", "\x07", '"', "\\"])
def test_what_an_escape_of_json_precedes_is_found_too(kind: str, levels: int, before: str) -> None:
    text = f"exit code: 0{before}{LOOKS[kind]}{before}."
    for _ in range(levels):
        text = json.dumps(text)

    (found,) = find_credentials(text, {})

    assert kind.startswith(found.what)
    assert LOOKS[kind][3:] not in redact(text, {})


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_is_left_alone(text: str) -> None:
    assert list(find_credentials(text, {})) == []
    assert redact(text, {}) == text


VALUE = "correct horse battery staple"


@pytest.mark.parametrize(
    "name",
    ["DEEPSEEK_API_KEY", "OPENAI_APIKEY", "GH_TOKEN", "DB_PASSWORD", "SECRET", "my_auth", "KEY_ID"],
)
def test_the_value_of_a_key_like_variable_is_a_credential(name: str) -> None:
    (found,) = find_credentials(f"a {VALUE} b", {name: VALUE, "HOME": "a"})

    assert (found.line, found.column, found.what) == (1, 3, f"the value of {name}")
    assert redact(f"{VALUE}{VALUE}", {name: VALUE}) == f"[the value of {name}]" * 2


@pytest.mark.parametrize("levels", [1, 2, 3], ids=["JSON", "JSON in JSON", "thrice"])
def test_the_value_is_found_as_json_spells_it(levels: int) -> None:
    value = 'pass "word"\nwith\\ more é'
    text = f"is {value}."
    for _ in range(levels):
        text = json.dumps(text, ensure_ascii=levels == 1)

    (found,) = find_credentials(text, {"DB_PASSWORD": value})

    assert found.what == "the value of DB_PASSWORD"
    assert "word" not in redact(text, {"DB_PASSWORD": value}).replace("DB_PASSWORD", "")


@pytest.mark.parametrize(
    "environ",
    [
        {"API_KEY": "short"},
        {"MONKEY": VALUE},
        {"KEYBOARD": VALUE},
        {"TOKENIZER": VALUE},
        {"PATH": VALUE},
    ],
)
def test_other_values_are_none(environ: dict[str, str]) -> None:
    assert secret_values(environ) == {}
    assert list(find_credentials(VALUE, environ)) == []


def test_overlapping_credentials_are_cut_out_once() -> None:
    key = LOOKS["an API key"]

    assert redact(f"<{key}>", {"API_KEY": key}) == "<[an API key]>"
    assert redact(f"<{key}>", {"API_KEY": key[3:]}) == "<[an API key]>"
