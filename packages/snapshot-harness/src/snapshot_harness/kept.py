"""What failing runs left for review: files and causes, in `.snapshot/` beside suite.toml."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from snapshot_harness.atomic import pending, write_scenario
from snapshot_harness.causes import Cause
from snapshot_harness.credentials import find_credentials, redact
from snapshot_harness.exceptions import FixtureError, Problem
from snapshot_harness.fixtures import stable_lines

FOLDER = ".snapshot"
FACTS = "pending.json"
_VERSION = 1
_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One scenario's actual files, and what is known about them.

    `base` holds the digests of the committed files that the run was compared
    with, `refusals` the reasons why these files must not be taken over. `stamp`
    is the digest of all that is kept: what was shown is what is taken over.
    """

    scenario: str
    directory: Path
    files: tuple[str, ...]
    base: Mapping[str, str | None]
    causes: tuple[Cause, ...]
    refusals: tuple[str, ...]
    stamp: str


def keep(  # noqa: PLR0913  facts, all by keyword
    suite: Path,
    scenario: str,
    *,
    files: Mapping[str, bytes],
    stale: Sequence[str] = (),
    causes: Sequence[Cause] = (),
    refusals: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Path:
    """Keep a run's actual files for review; return where.

    `stale` names committed files that the run would remove. What looks like a
    credential is cut out, and files without it can't be taken over.
    """
    environ = os.environ if environ is None else environ
    clean, leaks = _without_credentials(files, environ)
    target = suite / FOLDER / scenario
    facts = {
        "version": _VERSION,
        "scenario": scenario,
        "files": sorted(clean),
        "base": {name: _digest(suite / scenario / name) for name in sorted({*clean, *stale})},
        "causes": [asdict(cause) for cause in causes],
        "refusals": [redact(text, environ) for text in (*refusals, *leaks)],
    }
    text = redact(json.dumps(facts, ensure_ascii=False, indent=2), environ)
    described = f"{text}\n".encode(errors="backslashreplace")
    _replace(target, {**clean, FACTS: described})
    return target


def forget(suite: Path, scenario: str) -> None:
    """Remove what was kept of a scenario: it passed, or its files were accepted or rejected."""
    shutil.rmtree(suite / FOLDER / scenario, ignore_errors=True)


def find_kept(suite: Path) -> list[Kept]:
    """Return what waits for review, by name.

    Raises:
        FixtureError: A folder below `.snapshot/` is not one that a run left.
    """
    folder = suite / FOLDER
    if not folder.is_dir():
        return []
    found = []
    for entry in sorted(folder.iterdir()):
        if (entry / FACTS).is_file() and not entry.name.startswith("."):
            with contextlib.suppress(FileNotFoundError):  # settled by another review meanwhile
                found.append(_read(entry))
    return found


def accept(suite: Path, kept: Kept) -> list[str]:
    """Take a run's files over into its scenario, all or none; return what changed.

    Raises:
        FixtureError: The files must not be taken over, or the scenario is another by now.
    """
    directory = suite / kept.scenario
    problems = list(_objections(directory, kept))
    if problems:
        raise FixtureError(problems=problems)
    files: dict[str, bytes | None] = dict.fromkeys(kept.base)
    for name in kept.files:
        data = (kept.directory / name).read_bytes()
        old = directory / name
        has = name.endswith(".jsonl") and old.is_file()
        files[name] = stable_lines(data, old.read_bytes()) if has else data
    written = write_scenario(directory, files)
    forget(suite, kept.scenario)
    return written


def _replace(target: Path, files: Mapping[str, bytes]) -> None:
    """Put files into a folder that had others, or none, in one step."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name, data in files.items():
        (fresh / name).write_bytes(data)
    for left in reversed(range(_TRIES)):
        shutil.rmtree(target, ignore_errors=True)
        try:
            fresh.rename(target)
        except OSError as error:
            # Another run has just kept its own: whoever is last stays.
            if left and error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                continue
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        return


def _objections(directory: Path, kept: Kept) -> Iterator[Problem]:
    """Yield why a run's files must not be taken over."""
    if _stamp_now(kept.directory) != kept.stamp:
        what = "what was kept here is another by now, or gone"
        why = "Another run or another review came in between."
        yield Problem(path=kept.directory, what=what, why=why, hint="review again")
        return
    left = pending(directory)
    if left is not None:
        yield left.problem
    for text in kept.refusals:
        hint = "find out why; then refresh or record"
        yield Problem(path=kept.directory, what=text, hint=hint)
    for name, digest in kept.base.items():
        if _digest(directory / name) != digest:
            what = "the file changed since the run that left these"
            hint = "run the scenario again, then review what differs"
            yield Problem(path=directory / name, what=what, hint=hint)


def _without_credentials(
    files: Mapping[str, bytes], environ: Mapping[str, str]
) -> tuple[dict[str, bytes], list[str]]:
    clean: dict[str, bytes] = {}
    leaks: list[str] = []
    for name, data in files.items():
        text = data.decode(errors="surrogateescape")
        found = list(find_credentials(text, environ))
        leaks += [f"{name}:{one.line}: {one.what} was cut out" for one in found]
        clean[name] = redact(text, environ).encode(errors="surrogateescape") if found else data
    return clean, leaks


def _plain(name: str) -> str:
    """Return the name of a file in a scenario, and of none elsewhere."""
    return {Path(name).name: name}[name]


def _cause(facts: dict[str, Any]) -> Cause:
    return Cause(**{**facts, "records": tuple(facts["records"])})


def _stamp(directory: Path, facts: bytes, names: Sequence[str]) -> str:
    digest = hashlib.sha256(facts)
    for name in names:
        digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()


def _stamp_now(directory: Path) -> str | None:
    with contextlib.suppress(FixtureError, FileNotFoundError):
        return _read(directory).stamp
    return None


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _read(directory: Path) -> Kept:
    path = directory / FACTS
    data = path.read_bytes()
    try:
        facts: dict[str, Any] = json.loads(data)
        files = tuple(_plain(name) for name in facts["files"])
        return Kept(
            scenario={(_VERSION, directory.name): directory.name}[
                facts["version"], facts["scenario"]
            ],
            directory=directory,
            files=files,
            base={_plain(name): digest for name, digest in facts["base"].items()},
            causes=tuple(_cause(cause) for cause in facts["causes"]),
            refusals=tuple(facts["refusals"]),
            stamp=_stamp(directory, data, files),
        )
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        what = "not what this version of the harness leaves for review"
        hint = f"remove {directory}, and run the scenario again"
        raise FixtureError(problems=[Problem(path=path, what=what, hint=hint)]) from None
