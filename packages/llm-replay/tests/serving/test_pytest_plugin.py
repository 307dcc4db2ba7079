import sys
import textwrap

import pytest

pytest_plugins = ["pytester"]

HEAD = """
import asyncio
import types

import llm_replay

REQUEST = types.SimpleNamespace(messages=[], session_id="live")


def read(model, request=REQUEST):
    async def run():
        return [chunk async for chunk in model.stream(request)]

    return asyncio.run(run())
"""


def run(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    pytester.makepyfile(HEAD + textwrap.dedent(body))
    return pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")


def test_a_model_that_was_read_to_its_end_passes(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(scripted_model):
            model = scripted_model(llm_replay.say("hello"), children=[])
            assert len(read(model)) == 4
        """,
    )

    result.assert_outcomes(passed=1)


def test_left_over_steps_fail_a_test_that_passed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(scripted_model):
            read(scripted_model(llm_replay.say("one"), llm_replay.say("two")))
            scripted_model(llm_replay.say("never asked for"))
        """,
    )

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*script: 1 of 2 calls were served"])


def test_left_over_steps_of_a_test_that_failed_say_nothing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(scripted_model):
            scripted_model(llm_replay.say("one"))
            raise ValueError("the failure")
        """,
    )

    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("outcome", ["pass", "raise ValueError"])
def test_a_call_too_many_that_was_swallowed_fails_in_any_case(
    pytester: pytest.Pytester, outcome: str
) -> None:
    result = run(
        pytester,
        f"""
        def test_it(scripted_model):
            model = scripted_model()
            try:
                read(model)
            except Exception:
                pass
            {outcome}
        """,
    )

    result.assert_outcomes(**{"passed" if outcome == "pass" else "failed": 1}, errors=1)
    result.stdout.fnmatch_lines(["*the session 'live' has no recorded script that is free*"])


def test_a_fixture_used_where_no_test_ran_is_quiet(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.fixture
        def broken(scripted_model):
            scripted_model(llm_replay.say("one"))
            raise ValueError("set-up")

        def test_it(broken):
            pass
        """,
    )

    result.assert_outcomes(errors=1)


def test_pytest_starts_without_the_engine(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "llm_replay.pytest_plugin" in sys.modules
            assert not {"llm_replay.replay", "orjson", "regex"} & sys.modules.keys()
        """
    )
    plugins = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:snapshot-harness")
    result = pytester.runpytest_subprocess(*plugins)

    result.assert_outcomes(passed=1)
    assert sys.executable
