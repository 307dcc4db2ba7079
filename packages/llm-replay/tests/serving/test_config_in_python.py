from typing import Any

import pytest

from llm_replay.config import ReplayConfig, ReplayProviderConfig, check_config, parse_config
from llm_replay.exceptions import ConfigError
from llm_replay.script import load_replay_script, load_session_scripts

WRONG: Any = [1]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"file": 5}, "file: must be a string that isn't empty, not 5"),
        ({"file": b"a"}, "file: must be a string that isn't empty, not b'a'"),
        ({"file": "a\0"}, "file: must be the name of a file, and none has a NUL in it: 'a\\x00'"),
        ({"override_file": []}, "overrideFile: must be a string that isn't empty, not []"),
        ({"child_files": "ab"}, "childFiles: must be a list, not 'ab'"),
        ({"child_files": 1}, "childFiles: must be a list, not 1"),
        ({"child_files": [None]}, "childFiles[0]: must be a string that isn't empty"),
        ({"providers": 1}, "providers: must be a list, not 1"),
        ({"providers": [1]}, "providers[0]: must be a table"),
        (
            {"providers": [ReplayProviderConfig(id="p", models=WRONG)]},
            "providers[0].models[0]: must be a table",
        ),
        (
            {"providers": [ReplayProviderConfig(id="p", retry_policy=WRONG[0])]},
            "providers[0].retryPolicy: must be a table, not 1",
        ),
        ({"pace_ms": "1"}, "paceMs: must be a whole number from 0 to 2^53-1, not '1'"),
        ({"pace_ms": 1.0}, "paceMs: must be a whole number from 0 to 2^53-1, not 1.0"),
    ],
    ids=str,
)
def test_a_value_of_a_wrong_type_in_python_is_told_with_its_key(
    keys: dict[str, Any], problem: str
) -> None:
    for load in (check_config, load_session_scripts, load_replay_script):
        with pytest.raises(ConfigError) as caught:
            load(ReplayConfig(**keys))
        assert [str(found) for found in caught.value.problems] == [problem]


def test_a_number_longer_than_python_writes_is_refused_as_any_other() -> None:
    backoff = {"multiplier": 10**5000}
    with pytest.raises(ConfigError, match=r"from 1 to 2\^53-1, not a very long integer"):
        parse_config({"providers": [{"id": "p", "retryPolicy": {"backoff": backoff}}]})
