import os
from pathlib import Path
from typing import Any

import pytest

from llm_replay.config import (
    ReplayConfig,
    ReplayModelConfig,
    ReplayProviderConfig,
    check_config,
    parse_config,
    with_environment,
)
from llm_replay.exceptions import ConfigError
from llm_replay.seam import RETRY_CODES, RetryPolicy

WHOLE: dict[str, Any] = {
    "file": "session.jsonl",
    "overrideFile": "replay.override.json",
    "childFiles": ["session.1.jsonl"],
    "paceMs": 5,
    "providers": [
        {
            "id": "deepseek-official",
            "name": "DeepSeek",
            "retryPolicy": {
                "mode": "always",
                "maxRetries": 2,
                "codes": ["SERVER"],
                "instant": True,
                "backoff": {
                    "initialDelayMs": 1,
                    "maxDelayMs": 2,
                    "multiplier": 3,
                    "jitterRatio": 0,
                },
            },
            "models": [
                {
                    "id": "deepseek-v4-pro",
                    "name": "Pro",
                    "contextWindow": 128000,
                    "inputModalities": ["text", "image"],
                    "maxOutputTokens": 8192,
                    "reasoningEfforts": ["low", "high"],
                }
            ],
        }
    ],
}


def problems_of(config: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(config)
    return [str(problem) for problem in caught.value.problems]


def test_every_key_is_read() -> None:
    assert parse_config(WHOLE) == ReplayConfig(
        file="session.jsonl",
        override_file="replay.override.json",
        child_files=("session.1.jsonl",),
        pace_ms=5,
        providers=(
            ReplayProviderConfig(
                id="deepseek-official",
                name="DeepSeek",
                retry_policy=RetryPolicy(
                    mode="always",
                    max_retries=2,
                    codes=("SERVER",),
                    instant=True,
                    initial_delay_ms=1,
                    max_delay_ms=2,
                    multiplier=3.0,
                    jitter_ratio=0.0,
                ),
                models=(
                    ReplayModelConfig(
                        id="deepseek-v4-pro",
                        name="Pro",
                        context_window=128000,
                        input_modalities=("text", "image"),
                        max_output_tokens=8192,
                        reasoning_efforts=("low", "high"),
                    ),
                ),
            ),
        ),
    )


def test_everything_may_be_left_out() -> None:
    assert parse_config({}) == ReplayConfig()
    assert parse_config({"pace": "recorded"}).pace == "recorded"


def test_what_a_catalogue_leaves_out_has_plain_defaults() -> None:
    provider = {"id": "p", "retryPolicy": {}, "models": [{"id": "m"}]}
    [read] = parse_config({"providers": [provider]}).providers

    assert (read.name, read.retry_policy) == ("p", RetryPolicy())
    [model] = read.models
    assert (model.name, model.input_modalities, model.context_window) == ("m", ("text",), None)


def test_the_default_retry_policy_is_that_of_the_reference() -> None:
    policy = RetryPolicy()

    assert (policy.mode, policy.max_retries, policy.codes) == ("normal", 5, RETRY_CODES)
    assert (policy.initial_delay_ms, policy.max_delay_ms) == (500, 10_000)
    assert (policy.multiplier, policy.jitter_ratio, policy.instant) == (2.0, 0.1, False)


def test_a_policy_without_backoff_keeps_its_own_keys() -> None:
    provider = {"id": "p", "retryPolicy": {"maxRetries": 0, "codes": []}}
    [read] = parse_config({"providers": [provider]}).providers

    assert read.retry_policy == RetryPolicy(max_retries=0, codes=())


def test_a_configuration_written_in_python_reads_back_as_itself() -> None:
    config = parse_config(WHOLE)

    assert check_config(config) == config
    paths = check_config(ReplayConfig(file=Path("a"), child_files=[Path("b")]))
    assert paths == ReplayConfig(file="a", child_files=("b",))


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (None, "must be a table"),
        ([], "must be a table"),
        ({"file": ""}, "file: must be a string that isn't empty, not ''"),
        ({"file": None}, "file: must be a string that isn't empty, not None"),
        ({"overrideFile": 1}, "overrideFile: must be a string that isn't empty, not 1"),
        ({"childFiles": "a"}, "childFiles: must be a list, not 'a'"),
        ({"childFiles": ["a", ""]}, "childFiles[1]: must be a string that isn't empty"),
        ({"paceMs": -1}, "paceMs: must be a whole number from 0 to 2^53-1, not -1"),
        ({"paceMs": 1.5}, "paceMs: must be a whole number from 0 to 2^53-1, not 1.5"),
        ({"paceMs": True}, "paceMs: must be a whole number from 0 to 2^53-1, not True"),
        (
            {"paceMs": 2**53},
            "paceMs: must be a whole number from 0 to 2^53-1, not 9007199254740992",
        ),
        (
            {"file": "a\0b"},
            "file: must be the name of a file, and none has a NUL in it: 'a\\x00b'",
        ),
        (
            {"childFiles": ["a", "\0"]},
            "childFiles[1]: must be the name of a file, and none has a NUL in it: '\\x00'",
        ),
        ({"pace": "live"}, "pace: must be 'recorded', not 'live'"),
        ({"pace": []}, "pace: must be 'recorded', not []"),
        ({"paceMs": 1, "pace": "recorded"}, "pace: stands beside paceMs; keep one of them"),
        ({"pacems": 1}, "pacems: is not a key of this table; did you mean 'paceMs'?"),
        (
            {"zz": 1},
            (
                "zz: is not a key of this table; known: 'file', 'overrideFile', 'childFiles', "
                "'providers', 'paceMs' or 'pace'"
            ),
        ),
        ({"providers": {}}, "providers: must be a list, not {}"),
        ({"providers": ["deep"]}, "providers[0]: must be a table"),
        ({"providers": [{"name": "x"}]}, "providers[0].id: is missing"),
        ({"providers": [{"id": "a"}, {"id": "a"}]}, "providers[1].id: 'a' is there twice"),
    ],
    ids=str,
)
def test_a_problem_is_told_with_its_key(config: object, problem: str) -> None:
    assert problems_of(config) == [problem]


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ({"id": ""}, "id: must be a string that isn't empty, not ''"),
        ({"id": "m", "contextWindow": 0}, "contextWindow: must be a whole number from 1 to "),
        ({"id": "m", "inputModalities": "text"}, "inputModalities: must be a list, not 'text'"),
        (
            {"id": "m", "inputModalities": []},
            "inputModalities: must hold at least one of 'text' or 'image'",
        ),
        (
            {"id": "m", "inputModalities": ["text", "audio"]},
            "inputModalities[1]: must be 'text' or 'image', not 'audio'",
        ),
        ({"id": "m", "maxOutputTokens": "1"}, "maxOutputTokens: must be a whole number from "),
        ({"id": "m", "reasoningEfforts": [1]}, "reasoningEfforts[0]: must be a string that isn't "),
        ({"id": "m", "modalities": []}, "modalities: is not a key of this table; did you mean "),
    ],
    ids=str,
)
def test_a_problem_of_a_model_is_told_with_its_place(model: object, problem: str) -> None:
    [found] = problems_of({"providers": [{"id": "p", "models": [{"id": "ok"}, model]}]})

    assert found.startswith(f"providers[0].models[1].{problem}")


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"mode": "never"}, "mode: must be 'normal' or 'always', not 'never'"),
        ({"maxRetries": -1}, "maxRetries: must be a whole number from 0 to 2^53-1, not -1"),
        ({"codes": [""]}, "codes[0]: must be a string that isn't empty"),
        ({"instant": "yes"}, "instant: must be true or false, not 'yes'"),
        ({"backoff": 1}, "backoff: must be a table, not 1"),
        (
            {"backoff": {"jitterRatio": 2}},
            "backoff.jitterRatio: must be a number from 0 to 1, not 2",
        ),
        (
            {"backoff": {"multiplier": 0.5}},
            "backoff.multiplier: must be a number from 1 to 2^53-1, not 0.5",
        ),
        *(
            (
                {"backoff": {"multiplier": value}},
                f"backoff.multiplier: must be a number from 1 to 2^53-1, not {value!r}",
            )
            for value in (float("inf"), float("nan"), 2**53, True)
        ),
        (
            {"backoff": {"jitterRatio": float("nan")}},
            "backoff.jitterRatio: must be a number from 0 to 1, not nan",
        ),
        (
            {"backoff": {"jitter": 1}},
            "backoff.jitter: is not a key of this table; did you mean 'jitterRatio'?",
        ),
    ],
    ids=str,
)
def test_a_problem_of_a_retry_policy_is_told_with_its_place(policy: object, problem: str) -> None:
    found = problems_of({"providers": [{"id": "p", "retryPolicy": policy}]})

    assert found == [f"providers[0].retryPolicy.{problem}"]


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"paceMs": "x", "fil": 1, "providers": [{"models": [{"id": "m"}] * 2}]})

    assert str(caught.value) == (
        "llm-replay config: 4 problems\n"
        "  providers[0].id: is missing\n"
        "  providers[0].models[1].id: 'm' is there twice\n"
        "  paceMs: must be a whole number from 0 to 2^53-1, not 'x'\n"
        "  fil: is not a key of this table; did you mean 'file'?\n"
        "  hint: the keys are file, overrideFile, childFiles, providers, paceMs, pace"
    )


def test_files_that_are_not_named_come_from_the_environment() -> None:
    environ = {
        "DSH_SNAPSHOT_FILE": "s.jsonl",
        "DSH_SNAPSHOT_OVERRIDE": "o.json",
        "DSH_SNAPSHOT_CHILD_FILES": os.pathsep.join(["b.jsonl", "a.jsonl"]),
    }

    assert with_environment(ReplayConfig(pace_ms=3), environ) == ReplayConfig(
        file="s.jsonl", override_file="o.json", child_files=("b.jsonl", "a.jsonl"), pace_ms=3
    )


def test_files_that_are_named_win_over_the_environment() -> None:
    config = ReplayConfig(file="s", override_file="o", child_files=("c",))
    names = ("DSH_SNAPSHOT_FILE", "DSH_SNAPSHOT_OVERRIDE", "DSH_SNAPSHOT_CHILD_FILES")

    assert with_environment(config, dict.fromkeys(names, "other")) == config


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_variable_is_none(value: str | None) -> None:
    names = ("DSH_SNAPSHOT_FILE", "DSH_SNAPSHOT_OVERRIDE", "DSH_SNAPSHOT_CHILD_FILES")
    environ = {} if value is None else dict.fromkeys(names, value)

    assert with_environment(ReplayConfig(), environ) == ReplayConfig()
