"""The loop's tests run an agent inside one process, without network, key or real sleep."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loop_bench import Bench, Make


@pytest.fixture
def bench(
    tmp_path_factory: pytest.TempPathFactory, scripted_model: Callable[..., Any]
) -> Iterator[Make]:
    """Make an agent with a scripted model; its logs and frames are checked at the end."""
    made: list[Bench] = []

    def make(*steps: Any, children: Any = (), rebuild: bool = True, **facts: Any) -> Bench:
        agent = {
            key: facts.pop(key)
            for key in list(facts)
            if key not in Bench.__dataclass_fields__
        }
        place = len(made)
        model = scripted_model(
            *steps,
            children=children,
            rebuild=(lambda request: made[place].rebuild(request)) if rebuild else None,
        )
        made.append(Bench(root=lambda: tmp_path_factory.mktemp("work"), model=model, agent=agent, **facts))
        return made[place]

    yield make
    try:
        for one in made:
            one.check()
    finally:
        for one in made:
            one.close()
