"""Pytest plugin: scripted models that are checked when their test is over."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from llm_replay.scripted_model import ScriptedModel

_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Any:  # noqa: ANN401  what the hooks before it return
    """Keep whether the test itself passed: of one that failed, left-over steps say nothing."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> "Iterator[Callable[..., ScriptedModel]]":
    """Return `llm_replay.scripted`; each model made with it is checked at the end of the test.

    Steps that are left over fail a test that passed so far. A call too many, and a request that
    was not as it must be, fail it in any case: the runtime may have swallowed the error.
    """
    from llm_replay.scripted_model import scripted  # noqa: PLC0415  keeps pytest's start light

    made: list[ScriptedModel] = []

    def make(*steps: Any, **options: Any) -> "ScriptedModel":  # noqa: ANN401  as `scripted` takes them
        made.append(scripted(*steps, **options))
        return made[-1]

    yield make
    passed = request.node.stash.get(_PASSED, False)
    for model in made:
        if passed:
            model.assert_consumed()
        else:
            model.assert_no_fault()
