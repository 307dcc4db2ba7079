"""The session logs that a run left, read whole and in order."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_replay.exceptions import SessionLogError
from llm_replay.session_log import SessionLog, read_session_log, sort_logs
from snapshot_harness.exceptions import AgentError
from snapshot_harness.tail import Plain, find_logs


def harvest(sessions_root: Path) -> list[SessionLog]:
    """Return every log below `sessions_root`, in order of lineage.

    Raises:
        AgentError: A log is not one, has a gap, or two share a lineage.
    """
    paths = sorted(find_logs(sessions_root))
    logs = [_read(path, str(path.relative_to(sessions_root))) for path in paths]
    problems = [problem for log in logs for problem in _gaps(log)]
    logs = [logs[place] for place in sort_logs([log.header for log in logs])]
    problems += _doubles(logs)
    if problems:
        raise AgentError(
            what="\n".join(problems), hint="an agent appends to its log, one event a line"
        )
    return logs


def _read(path: Path, name: str) -> SessionLog:
    try:
        text = Plain(compressed=path.suffix == ".zstd").decode(path.read_bytes())
        return read_session_log(_whole(text, name), name=name)
    except SessionLogError as error:
        raise AgentError(what=f"the agent's log can't be read: {error}") from None
    except ValueError as error:
        raise AgentError(what=f"{name}: the agent's log is no zstd stream: {error}") from None


def _whole(text: bytes, name: str) -> bytes:
    if text and not text.endswith(b"\n"):
        raise AgentError(what=f"{name}: the last line of the agent's log was cut")
    return text


def _gaps(log: SessionLog) -> Iterator[str]:
    for index, event in enumerate(log.events):
        seq = event.get("seq")
        if type(seq) is not int or seq != index:
            yield f"{log.name}:{log.lines[index]}: seq is {seq!r}, expected {index}"
            return


def _doubles(logs: Sequence[SessionLog]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for log in logs:
        lineage = log.header.lineage
        if lineage is None:
            continue
        if lineage in seen:
            yield f"{log.name}: lineage {lineage!r} is that of {seen[lineage]} already"
        seen[lineage] = log.name
