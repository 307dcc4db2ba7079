import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replay_kit import Request, Runtime, collect, install, text_call, texts, told, write_log

from llm_replay.config import ReplayConfig, ReplayModelConfig, ReplayProviderConfig
from llm_replay.exceptions import (
    ConfigError,
    ReplayExhaustedError,
    ScriptError,
    UnclaimedScriptError,
)
from llm_replay.replay import install_llm_replay
from llm_replay.seam import ProviderAdapter, RetryPolicy
from llm_replay.verdict import read_verdict


def ask(runtime: Runtime, session: str | None = "live", **request: str) -> list[str]:
    asked = Request(session_id=session, **request)  # type: ignore[arg-type]  # any field
    stream = runtime.stream(asked, "deep")
    return texts(asyncio.run(collect(stream)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "session.jsonl", text_call("one"), text_call("two"))


DEEP = ReplayProviderConfig(
    id="deep",
    name="Deep",
    models=[ReplayModelConfig(id="small"), ReplayModelConfig(id="large", context_window=9)],
    retry_policy=RetryPolicy(instant=True, jitter_ratio=0),
)


def test_without_providers_replay_answers_in_front_of_all_adapters(
    runtime: Runtime, log: Path
) -> None:
    handle = install(runtime, log)

    assert [ask(runtime), ask(runtime)] == [["one"], ["two"]]
    handle.assert_consumed()
    assert len(runtime.handlers) == 1
    assert runtime.providers == {}


def test_with_providers_replay_is_registered_with_its_catalogue(
    runtime: Runtime, log: Path
) -> None:
    install(runtime, log, providers=[DEEP, ReplayProviderConfig(id="other")])

    adapter = runtime.providers["deep"]
    assert ask(runtime) == ["one"]
    assert runtime.handlers == []
    assert (adapter.name, [model.id for model in adapter.models]) == ("Deep", ["small", "large"])
    assert adapter.retry_policy == RetryPolicy(instant=True, jitter_ratio=0)
    assert (runtime.providers["other"].name, runtime.providers["other"].retry_policy) == (
        "other",
        None,
    )


def test_all_providers_read_the_same_scripts(runtime: Runtime, log: Path) -> None:
    install(runtime, log, providers=[DEEP, ReplayProviderConfig(id="other")])

    first = runtime.providers["other"].stream(Request())
    assert texts(asyncio.run(collect(first))) == ["one"]
    assert ask(runtime) == ["two"]


@pytest.mark.parametrize("providers", [[], [DEEP, ReplayProviderConfig(id="other")]])
def test_disposing_restores_what_was_there_and_a_second_install_works(
    runtime: Runtime, log: Path, providers: list[ReplayProviderConfig]
) -> None:
    first = install(runtime, log, providers=providers)
    ask(runtime)
    first.dispose()
    first.dispose()
    assert (runtime.handlers, runtime.providers) == ([], {})

    second = install(runtime, log, providers=providers)
    assert [ask(runtime), ask(runtime)] == [["one"], ["two"]]
    second.assert_consumed()


def test_a_second_install_in_the_same_verdict_directory_begins_anew(
    runtime: Runtime, log: Path, verdict_dir: Path
) -> None:
    for _ in range(2):
        handle = install(runtime, log, verdict=verdict_dir)
        assert [ask(runtime), ask(runtime)] == [["one"], ["two"]]
        handle.dispose()

    assert len(read_verdict(verdict_dir)) == 2
    assert list(verdict_dir.glob("*.claim")) == []


def test_an_installation_that_fails_half_way_leaves_nothing(log: Path, verdict_dir: Path) -> None:
    class Full(Runtime):
        def register_provider(
            self, provider_id: str, adapter: ProviderAdapter, /
        ) -> Callable[[], None]:
            if self.providers:
                raise ValueError("full")
            return super().register_provider(provider_id, adapter)

    runtime = Full()
    with pytest.raises(ValueError, match="full"):
        install(
            runtime, log, providers=[DEEP, ReplayProviderConfig(id="other")], verdict=verdict_dir
        )
    assert runtime.providers == {}


def test_the_installation_is_told_in_the_order_of_files(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    late = write_log(tmp_path / "session.1.jsonl", text_call("late"), createdAt=9)
    early = write_log(tmp_path / "session.2.jsonl", createdAt=1)
    install(runtime, write_log(tmp_path / "session.jsonl"), late, early, verdict=verdict_dir)

    [file] = read_verdict(verdict_dir)
    assert file.facts[0]["scripts"] == [
        {"file": "session.jsonl", "calls": 0},
        {"file": "session.1.jsonl", "calls": 1},
        {"file": "session.2.jsonl", "calls": 0},
    ]


def test_children_are_taken_by_creation_and_told_by_the_place_of_their_files(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    primary = write_log(tmp_path / "session.jsonl", text_call("first"), createdAt=5)
    late = write_log(tmp_path / "session.1.jsonl", text_call("late"), createdAt=9)
    early = write_log(tmp_path / "session.2.jsonl", text_call("early"), createdAt=1)
    install(runtime, primary, late, early, verdict=verdict_dir)

    assert [ask(runtime, name) for name in "abc"] == [["first"], ["early"], ["late"]]
    assert [fact for fact in told(verdict_dir) if fact.startswith("bound")] == [
        "bound 0 a",
        "bound 2 b",
        "bound 1 c",
    ]


def test_sessions_are_served_by_lineage_in_any_order(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    files = [
        write_log(tmp_path / f"session.{name}.jsonl", text_call(lineage), lineage=lineage)
        for name, lineage in enumerate(["1", "1/1.1.1", "1/1.1.2"])
    ]
    install(runtime, *files, verdict=verdict_dir)

    order = [("z", "1/1.1.2"), ("x", "1"), ("y", "1/1.1.1")]
    assert [ask(runtime, session, lineage=lineage) for session, lineage in order] == [
        ["1/1.1.2"],
        ["1"],
        ["1/1.1.1"],
    ]
    assert told(verdict_dir)[0] == "bound 2 z 1/1.1.2"


def test_left_over_calls_are_named_with_their_files(
    runtime: Runtime, log: Path, tmp_path: Path
) -> None:
    child = write_log(tmp_path / "session.1.jsonl", text_call("x"))
    handle = install(runtime, log, child)
    ask(runtime)

    with pytest.raises(UnclaimedScriptError) as caught:
        handle.assert_consumed()
    assert str(caught.value) == (
        "recorded model calls were never asked for\n"
        "  session.jsonl: 1 of 2 calls were served\n"
        "  session.1.jsonl: 0 of 1 calls were served\n"
        "  hint: find out why the run ended early, or record the scenario again"
    )


def test_a_call_too_many_that_the_runtime_swallowed_is_raised_again(
    runtime: Runtime, log: Path
) -> None:
    handle = install(runtime, log)
    for _ in range(2):
        ask(runtime)
    stream = runtime.stream(Request())
    with pytest.raises(ReplayExhaustedError) as first:
        asyncio.run(collect(stream))

    with pytest.raises(ReplayExhaustedError) as again:
        handle.assert_consumed()
    assert again.value is first.value


def test_a_call_too_many_that_was_never_read_is_raised_too(runtime: Runtime, log: Path) -> None:
    handle = install(runtime, log)
    for _ in range(3):
        runtime.stream(Request())

    with pytest.raises(ReplayExhaustedError):
        handle.assert_consumed()


def test_a_fixture_that_can_not_be_replayed_fails_the_installation(
    runtime: Runtime, tmp_path: Path, verdict_dir: Path
) -> None:
    with pytest.raises(ScriptError, match="there is no such file"):
        install(runtime, tmp_path / "gone.jsonl", verdict=verdict_dir)

    assert (runtime.handlers, list(verdict_dir.iterdir())) == ([], [])


def test_a_configuration_in_python_is_checked_like_one_in_an_overlay(
    runtime: Runtime, log: Path
) -> None:
    heard: Any = ("text", "audio")
    model = ReplayModelConfig(id="a", input_modalities=heard)
    provider = ReplayProviderConfig(id="p", models=[model], retry_policy=RetryPolicy())

    with pytest.raises(ConfigError, match=r"providers\[0\]\.models\[0\]\.inputModalities\[1\]"):
        install(runtime, log, providers=[provider])


def test_the_process_environment_is_the_default(
    runtime: Runtime, log: Path, verdict_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSH_SNAPSHOT_VERDICT_DIR", str(verdict_dir))
    install_llm_replay(runtime, ReplayConfig(file=log))

    assert len(read_verdict(verdict_dir)) == 1


def test_files_that_the_configuration_does_not_name_come_from_the_environment(
    runtime: Runtime, tmp_path: Path
) -> None:
    named = {"DSH_SNAPSHOT_FILE": str(write_log(tmp_path / "a.jsonl", text_call("named")))}
    file = write_log(tmp_path / "b.jsonl", text_call("told"))

    for config, said in ((ReplayConfig(), "named"), (ReplayConfig(file=file), "told")):
        handle = install_llm_replay(runtime, config, environ=named)
        assert ask(runtime) == [said]
        handle.dispose()
