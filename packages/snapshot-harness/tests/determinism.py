"""Replay a suite again and again while everything around it varies; print what moved first.

Run by `nox -s determinism`. Each run has another time zone, locale, umask, worker count and place
for its directories (now and then behind a symbolic link). The agents' hash seed is random in
every run, because the harness passes no `PYTHONHASHSEED` on.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ZONES = ["UTC", "Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu", "Pacific/Pago_Pago"]
LOCALES = ["C", "C.UTF-8", "POSIX", "tr_TR.UTF-8", "de_DE.UTF-8"]
UMASKS = [0o022, 0o077, 0o002, 0o027]
WORKERS = [0, 1, 2, 3, 4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What one run is surrounded by."""

    zone: str
    locale: str
    umask: int
    workers: int
    linked: bool

    def __str__(self) -> str:
        place = "behind a link" if self.linked else "as it is"
        return (
            f"TZ={self.zone} LC_ALL={self.locale} umask={self.umask:03o} "
            f"-n {self.workers} TMPDIR {place}"
        )


def surroundings(number: int, seed: int) -> Surroundings:
    """Choose the surroundings of one run; neighbours differ in every one of them."""
    rng = random.Random(seed)  # noqa: S311  nothing secret
    shuffled = {name: rng.sample(pool, len(pool)) for name, pool in POOLS.items()}
    values: dict[str, Any] = {name: pool[number % len(pool)] for name, pool in shuffled.items()}
    return Surroundings(**values)


POOLS: Mapping[str, list[Any]] = {
    "zone": ZONES,
    "locale": LOCALES,
    "umask": UMASKS,
    "workers": WORKERS,
    "linked": [False, True],
}


def replay(suite: Path, around: Surroundings, scratch: Path) -> list[str]:
    """Replay the whole suite once; return what moved, the first first."""
    real = scratch / "real"
    real.mkdir()
    place = scratch / "link" if around.linked else real
    if around.linked:
        place.symlink_to(real)
    report = scratch / "report.json"
    command = [
        *(sys.executable, "-m", "pytest", str(suite), "-q", "-p", "no:cacheprovider"),
        *("-n", str(around.workers), f"--snapshot-report={report}"),
        f"--basetemp={scratch / 'pytest'}",
    ]
    environment = os.environ | {"TZ": around.zone, "LC_ALL": around.locale, "TMPDIR": str(place)}
    ran = subprocess.run(  # noqa: S603  our own command
        command,
        env=environment,
        umask=around.umask,
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    moved = [] if ran.returncode == 0 else [*moved_fields(report), ran.stdout[-3000:]]
    left = sorted(str(path.relative_to(real)) for path in real.iterdir())
    return moved + [f"left behind in the temporary directory: {name}" for name in left]


def moved_fields(report: Path) -> list[str]:
    """Return the first difference of each scenario that did not replay."""
    if not report.exists():
        return ["the run wrote no report"]
    found = []
    for scenario in json.loads(report.read_bytes())["scenarios"]:
        first = [json.dumps(cause, ensure_ascii=False) for cause in scenario["causes"][:1]]
        found += [f"{scenario['scenario']}: {what}" for what in [*first, *scenario["problems"]]]
    return found


def main() -> int:
    """Replay `--runs` times; the first run that differs ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path, help="the directory of suite.toml")
    parser.add_argument("--runs", type=int, default=20, help="how often (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="another choice of surroundings")
    options = parser.parse_args()
    for number in range(options.runs):
        around = surroundings(number, options.seed)
        # Not the default place: a run directory's path is bounded, so keep this one short.
        with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as scratch:
            moved = replay(options.suite, around, Path(scratch))
        print(f"run {number + 1} of {options.runs}: {around}: {'moved' if moved else 'equal'}")
        if moved:
            print("\n".join(moved))
            return 1
    print(f"{options.runs} runs, all equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
