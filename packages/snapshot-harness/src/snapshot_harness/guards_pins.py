"""Header classes have one pin each, and its sidecars are as refresh writes them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from snapshot_harness.exceptions import Problem
from snapshot_harness.fixtures import SYSTEM, TOOLS, find_logs
from snapshot_harness.headers import SidecarError, read_sidecars, system_bytes, tools_bytes
from snapshot_harness.suite import Scenario, ScenarioFile, Suite

_HEADER = b'"request/header"'


def pin_problems(
    suite: Suite, scenarios: Sequence[tuple[Scenario, ScenarioFile]]
) -> Iterator[Problem]:
    """Yield what is wrong with the suite's header classes and their pins."""
    classes = suite.file.header_classes
    members: dict[str, list[tuple[Scenario, ScenarioFile]]] = {name: [] for name in classes}
    for scenario, file in scenarios:
        name = suite.header_class_of(file)
        if name in members:
            members[name].append((scenario, file))
        else:
            yield Problem(
                path=scenario.directory / "scenario.toml",
                what=f"header class {name!r} is not in suite.toml",
                hint=f"add it to `header_classes`, or use one of: {', '.join(classes)}",
            )
    for name, those in members.items():
        yield from _class_problems(suite, name, those)
    pins = [scenario.directory for scenario, file in scenarios if file.pins_header]
    for directory in pins:
        yield from _sidecar_problems(directory)
    yield from _doubles(pins)


def _class_problems(
    suite: Suite, name: str, members: Sequence[tuple[Scenario, ScenarioFile]]
) -> Iterator[Problem]:
    pins = [scenario for scenario, file in members if file.pins_header]
    if len(pins) > 1:
        names = ", ".join(pin.name for pin in pins)
        yield Problem(
            path=suite.path,
            what=f"header class {name!r} has {len(pins)} pins: {names}",
            why="The text of a prompt is kept once.",
            hint="leave `pins_header = true` in one of them, and refresh",
        )
    elif not pins and any(_has_header(scenario.directory) for scenario, _ in members):
        yield Problem(
            path=suite.path,
            what=f"header class {name!r} has no pin",
            why="Nothing says what its sessions should be told.",
            hint="say `pins_header = true` in one scenario of the class, and refresh it",
        )


def _has_header(directory: Path) -> bool:
    return any(_HEADER in path.read_bytes() for path in find_logs(directory))


def _sidecar_problems(directory: Path) -> Iterator[Problem]:
    system, tools = directory / SYSTEM, directory / TOOLS
    if not (system.is_file() and tools.is_file()):
        return  # told as missing files
    hint = "refresh the scenario: refresh writes both sidecars"
    try:
        headers = read_sidecars(system.read_bytes(), tools.read_bytes())
    except SidecarError as error:
        yield Problem(path=system, what=str(error), hint=hint)
        return
    for path, data in ((system, system_bytes(headers)), (tools, tools_bytes(headers))):
        if path.read_bytes() != data:
            yield Problem(path=path, what="not in the form that refresh writes", hint=hint)
    if len({told.key for told in headers}) < len(headers):
        yield Problem(path=system, what="the same header stands in it twice", hint=hint)


def _doubles(pins: Sequence[Path]) -> Iterator[Problem]:
    seen: dict[tuple[bytes, ...], Path] = {}
    for directory in pins:
        paths = (directory / SYSTEM, directory / TOOLS)
        if not all(path.is_file() for path in paths):
            continue
        key = tuple(path.read_bytes() for path in paths)
        if key in seen:
            yield Problem(
                path=directory / SYSTEM,
                what=f"both sidecars are those of {seen[key].name} too",
                why="Two classes with the same headers are one class.",
                hint="use one header class for both, with one pin",
            )
        seen.setdefault(key, directory)
