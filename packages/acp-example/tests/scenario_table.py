"""The page that maps behaviours to scenarios and back.

The way there is written by hand. Run as a program this writes the way back, from it and from the
directories.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "scenarios.md"
SCENARIOS = ROOT / "scenarios"

COMMAND = "python packages/acp-example/tests/scenario_table.py"
MARK = f"<!-- What follows is written by `{COMMAND}`. -->\n"
_ROW = re.compile(r"^\| `([a-z-]+\.[a-z-]+)` \| (.+) \| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) \|$")
_HEAD = """
## Scenario by scenario

| scenario | holds | why |
| --- | --- | --- |
"""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One row of the way there; its first scenario is the one to read."""

    key: str
    what: str
    scenarios: tuple[str, ...]


def behaviours(page: str) -> list[Behaviour]:
    """Return the rows of the way there."""
    there, _, _ = page.partition(MARK)
    rows = [_ROW.match(line) for line in there.splitlines()]
    return [
        Behaviour(row[1], row[2], tuple(name.strip("`") for name in row[3].split(", ")))
        for row in rows
        if row is not None
    ]


def reasons() -> dict[str, str]:
    """Return why each scenario exists, by its name."""
    files = sorted(SCENARIOS.glob("*/scenario.toml"))
    return {file.parent.name: tomllib.loads(file.read_text())["why"] for file in files}


def way_back(page: str) -> str:
    """Return the second half of the page as it should be."""
    rows = []
    for name, why in reasons().items():
        keys = [f"`{one.key}`" for one in behaviours(page) if name in one.scenarios]
        rows.append(f"| `{name}` | {', '.join(keys)} | {why} |\n")
    return _HEAD + "".join(rows)


def main() -> None:
    """Write the way back."""
    page = PAGE.read_text()
    there, mark, _ = page.partition(MARK)
    PAGE.write_text(there + mark + way_back(page))


if __name__ == "__main__":
    main()
