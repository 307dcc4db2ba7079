"""The loop's tests run an agent inside one process, without network, key or real sleep."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loop_bench import Bench, Json, Make

from llm_replay.scripted import RecordedRequest


@pytest.fixture
def bench(
    tmp_path_factory: pytest.TempPathFactory, scripted_model: Callable[..., Any]
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
