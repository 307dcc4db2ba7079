"""The agent's environment: built by hand, nothing inherited that isn't named here."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from snapshot_harness.rundir import RunDirectory

PASSED_ON = ("PATH",)
COVERAGE = "COVERAGE_"


@dataclass(frozen=True, slots=True)
class ScriptFiles:
    """The files from which replay takes the model's words."""

    primary: Path
    children: Sequence[Path] = ()
    override: Path | None = None


def agent_environment(
    directory: RunDirectory, script: ScriptFiles | None, named: Mapping[str, str]
) -> dict[str, str]:
    """Return the agent's environment; without a script a live model answers."""
    run = directory.path
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    env |= {name: value for name, value in os.environ.items() if name.startswith(COVERAGE)}
    env |= {
        "HOME": str(run / "home"),
        "TMPDIR": str(run / "tmp"),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        **named,
        "DSH_SNAPSHOT": "record" if script is None else "replay",
        "DSH_SNAPSHOT_SESSIONS_ROOT": str(run / "sessions"),
        "DSH_SNAPSHOT_SPILL_ROOT": str(run / "spill"),
        "DSH_SNAPSHOT_VERDICT_DIR": str(run / "verdict"),
        "DSH_SNAPSHOT_RUN": str(run),
    }
    if script is not None:
        env["DSH_SNAPSHOT_FILE"] = str(script.primary)
        if script.children:
            children = os.pathsep.join(str(child) for child in script.children)
            env["DSH_SNAPSHOT_CHILD_FILES"] = children
        if script.override is not None:
            env["DSH_SNAPSHOT_OVERRIDE"] = str(script.override)
    return env
