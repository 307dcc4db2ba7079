"""The tables and examples of the reference, as a test reads them."""

import re

from documentation import DOCS, read_page

REFERENCE = DOCS / "reference"
CODE = re.compile(r"`` ?(.+?) ?``|`([^`]+)`")


def table(page: str, heading: str) -> list[list[str]]:
    """Return the rows of all tables between a heading and the next one, without their heads."""
    text = "\n" + (REFERENCE / page).read_text("utf-8")
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"{page} has no {heading!r}"
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith("| ---"):
            rows.pop()
        elif line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def code(cell: str) -> list[str]:
    """Return what stands in a cell as code."""
    return [match[1] or match[2] for match in CODE.finditer(cell)]


def first_column(page: str, heading: str) -> list[str]:
    """Return the names that a table explains."""
    return [code(row[0])[0] for row in table(page, heading) if code(row[0])]


def examples(page: str, language: str) -> list[str]:
    """Return the examples of a page in one language."""
    return [one.text for one in read_page(f"reference/{page}")[0] if one.language == language]
