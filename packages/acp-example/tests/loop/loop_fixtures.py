"""The fixtures of the loop: an agent inside one process, without network, key or real sleep."""

import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loop_bench import Bench, Json, Make

from llm_replay.scripted_model import RecordedRequest

KEYS = ("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "OPENAI_API_KEY", "DSH_SNAPSHOT")
_offline = False


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    if _offline and event == "socket.__new__" and arguments[1] != socket.AF_UNIX:
        raise RuntimeError("a test of the loop makes no network connection")


sys.addaudithook(_refuse_network)


@pytest.fixture
def offline() -> Iterator[None]:
    """Refuse every network socket while a test runs."""
    global _offline  # noqa: PLW0603  an audit hook can't be taken away, only told
    _offline = True
    yield
    _offline = False


@pytest.fixture
def keyless() -> Iterator[None]:
    """Take away keys that a developer may have."""
    with pytest.MonkeyPatch.context() as environment:
        for name in KEYS:
            environment.delenv(name, raising=False)
        yield


@pytest.fixture
def bench(
    tmp_path_factory: pytest.TempPathFactory,
    scripted_model: Callable[..., Any],
    offline: None,  # noqa: ARG001  asked for, for what it does
    keyless: None,  # noqa: ARG001  as above
) -> Iterator[Make]:
    """Make an agent with a scripted model; its logs and frames are checked at the end."""
    made: list[Bench] = []

    def make(*steps: Json, children: Json = (), rebuild: bool = True, **facts: Json) -> Bench:
        agent = {
            key: facts.pop(key) for key in list(facts) if key not in Bench.__dataclass_fields__
        }
        place = len(made)

        def rebuilt(request: RecordedRequest) -> list[Json]:
            return made[place].rebuild(request)

        model = facts.pop("model", None) or scripted_model(
            *steps,
            children=children,
            rebuild=rebuilt if rebuild else None,
        )
        made.append(
            Bench(root=lambda: tmp_path_factory.mktemp("work"), model=model, agent=agent, **facts)
        )
        return made[place]

    yield make
    try:
        for one in made:
            one.check()
    finally:
        for one in made:
            one.close()
