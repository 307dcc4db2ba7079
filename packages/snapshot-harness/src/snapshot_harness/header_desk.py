"""What sessions were told over a whole run, gathered, and judged once per header class."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snapshot_harness.credentials import redact
from snapshot_harness.exceptions import ScenarioError
from snapshot_harness.fixtures import SYSTEM, TOOLS
from snapshot_harness.headers import SidecarError, Told, judge, read_sidecars
from snapshot_harness.run_report import shown_path
from snapshot_harness.suite import Suite, read_suite


@dataclass(slots=True)
class HeaderSender:
    """The side that runs scenarios: it hands on each text once."""

    _sent: set[str] = field(default_factory=set)

    def pack(self, headers: Sequence[Told]) -> dict[str, Any]:
        """Return the headers of a scenario as JSON, texts only where they are new."""
        keys, texts = [], {}
        for told in headers:
            value = [told.system, told.tools]
            key = hashlib.sha256(json.dumps(value).encode()).hexdigest()
            keys.append(key)
            if key not in self._sent:
                self._sent.add(key)
                texts[key] = value
        return {"keys": keys, "texts": texts}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One class of one suite: what to report, under which name, and at which file."""

    suite: str
    header_class: str
    file: Path
    problems: Sequence[str]


@dataclass(slots=True)
class HeaderDesk:
    """The controlling side: it compares when all scenarios are done."""

    _texts: dict[str, Told] = field(default_factory=dict)
    _seen: dict[tuple[str, str, str], dict[str, list[str]]] = field(default_factory=dict)

    def add(
        self, packed: Mapping[str, Any], *, node: str, suite: str, header_class: str, scenario: str
    ) -> None:
        """Take in what one scenario's sessions were told; `node` is the suite's node id."""
        for key, (system, tools) in packed["texts"].items():
            self._texts[key] = Told(system, tools)
        if packed["keys"]:
            self._seen.setdefault((node, suite, header_class), {})[scenario] = packed["keys"]

    def judge(self) -> list[Judgement]:
        """Compare each class with its pin's sidecars."""
        judgements = []
        for (node, path, name), seen in self._seen.items():
            suite = read_suite(Path(path))
            pin = find_pin(suite, name)
            file = shown_path(suite.path if pin is None else pin / SYSTEM)
            problems = [redact(one, os.environ) for one in self._judge(suite, name, seen)]
            judgements.append(Judgement(node, name, file, problems))
        return judgements

    def _judge(self, suite: Suite, name: str, seen: Mapping[str, list[str]]) -> list[str]:
        headers = {
            scenario: [self._texts[key] for key in keys] for scenario, keys in sorted(seen.items())
        }
        pin = find_pin(suite, name)
        if pin is None:
            what = f"{suite.path}: no scenario pins header class {name!r}"
            return [f"{what}\n  hint: say `pins_header = true` in one scenario.toml of the class"]
        try:
            pinned = read_sidecars((pin / SYSTEM).read_bytes(), (pin / TOOLS).read_bytes())
        except FileNotFoundError as error:
            missing = f"{shown_path(pin)}: {Path(error.filename).name} is missing"
            hint = f"refresh {pin.name!r}: it pins class {name!r}, and refresh writes the file"
            return [f"{missing}\n  hint: {hint}"]
        except (OSError, SidecarError) as error:
            return [f"{pin}: the sidecars of class {name!r} can't be read: {error}\n{_hint(pin)}"]
        problems = list(judge(name, pinned, headers).problems)
        if not problems and pin.name in headers and headers[pin.name] != pinned:
            problems.append(
                f"{pin}: its sidecars hold {len(pinned)} headers, its run had "
                f"{len(headers[pin.name])}, or in another order"
            )
        return [f"{problem}\n{_hint(pin)}" for problem in problems]


def find_pin(suite: Suite, header_class: str) -> Path | None:
    """Return the directory of the scenario that pins a class, if there is one."""
    for scenario in suite.scenarios:
        try:
            file = scenario.file
        except ScenarioError:
            continue
        if file.pins_header and suite.header_class_of(file) == header_class:
            return scenario.directory
    return None


def _hint(pin: Path) -> str:
    return f"  hint: if this change is meant, refresh {pin.name!r}: it pins this class"
