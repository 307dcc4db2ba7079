"""What refresh and record write into a scenario, and what keeps them from it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from llm_replay.tokens import Roots
from snapshot_harness.credentials import find_credentials
from snapshot_harness.fixtures import (
    SYSTEM,
    TOOLS,
    TRANSCRIPT,
    find_logs,
    log_bytes,
    log_name,
    stable_lines,
    transcript_bytes,
    write_scenario,
)
from snapshot_harness.headers import Told, stable_tools, system_bytes, tools_bytes
from snapshot_harness.normalize import Normalized
from snapshot_harness.suite import ScenarioFile


def files_of(
    actual: Normalized, file: ScenarioFile, *, headers: Sequence[Told], with_logs: bool
) -> dict[str, bytes]:
    """Return the files that a run would write."""
    files = {TRANSCRIPT: transcript_bytes(actual.transcript)}
    if with_logs:
        for number, log in enumerate(actual.logs):
            files[log_name(number)] = log_bytes(log, layout=file.layout)
    if file.pins_header:
        files[SYSTEM], files[TOOLS] = system_bytes(headers), tools_bytes(headers)
    return files


def refusals(files: Mapping[str, bytes], roots: Roots, environ: Mapping[str, str]) -> list[str]:
    """Return why these files may not be written: a run's own name in them, or a credential."""
    return [
        problem
        for name, data in files.items()
        for problem in (*_leaks(name, data, roots), *_credentials(name, data, environ))
    ]


def write(directory: Path, files: Mapping[str, bytes], *, with_logs: bool) -> list[str]:
    """Write a scenario's files, all or none, and remove its stale logs; return what changed."""
    new: dict[str, bytes | None] = {
        name: _stable(name, data, _old(directory / name)) for name, data in files.items()
    }
    if with_logs:
        new |= dict.fromkeys(stale_logs(directory, files))
    return write_scenario(directory, new)


def stale_logs(directory: Path, files: Mapping[str, bytes]) -> list[str]:
    """Return the names of the committed logs that are not among the new files."""
    return [path.name for path in find_logs(directory) if path.name not in files]


def _stable(name: str, data: bytes, old: bytes | None) -> bytes:
    """Return a file's new content, what is equal in it spelled as before."""
    if name == TOOLS:
        return stable_tools(data, old)
    return stable_lines(data, old) if name.endswith(".jsonl") else data


def _old(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _leaks(name: str, data: bytes, roots: Roots) -> Iterator[str]:
    generated = {Path(root).name for root in (roots.run, roots.cwd) if root is not None} - {"cwd"}
    for leaf in sorted(generated):
        place = data.find(leaf.encode())
        if place >= 0:
            line = data.count(b"\n", 0, place) + 1
            yield (
                f"{name}:{line}: the run directory's generated name is in what would be written\n"
                "  It is another one in each run, and this spelling of it gets no token.\n"
                "  hint: let the agent write the path as it was given, or add a rule to suite.toml"
            )


def _credentials(name: str, data: bytes, environ: Mapping[str, str]) -> Iterator[str]:
    for found in find_credentials(data.decode("utf-8", "replace"), environ):
        yield (
            f"{name}:{found.line}:{found.column}: {found.what} is in what would be written\n"
            "  hint: keep it out of what the agent and the model say, and replace the key"
        )
