"""The session logs that a run left, read whole and in order."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_replay.exceptions import SessionLogError
from llm_replay.session_log import SessionLog, read_session_log, sort_logs
from snapshot_harness.exceptions import AgentError
from snapshot_harness.tail import NAMES, Plain, find_logs

_SHOWN = 5


_WRITES = "let the agent write and flush whole lines, each a record as the contract says"


def harvest(
    sessions_root: Path, *, needed: bool = False, unfinished: bool = False
) -> list[SessionLog]:
    """Return every log below `sessions_root`, in order of lineage.

    `needed`: there must be one. `unfinished`: the agent was killed, maybe within a line.

    Raises:
        AgentError: A log is not one, has a gap, or two share a lineage; or the needed one is not
            there.
    """
    paths = sorted(find_logs(sessions_root))
    if needed and not paths:
        raise _missing(sessions_root)
    logs = [
        _read(path, str(path.relative_to(sessions_root)), unfinished=unfinished) for path in paths
    ]
    problems = [problem for log in logs for problem in _gaps(log)]
    logs = [logs[place] for place in sort_logs([log.header for log in logs])]
    problems += _doubles(logs)
    if problems:
        raise AgentError(
            what="\n".join(problems), hint="an agent appends to its log, one event a line"
        )
    return logs


def _missing(root: Path) -> AgentError:
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    found = ", ".join(names[:_SHOWN]) + (", …" if names[_SHOWN:] else "")
    return AgentError(
        what="no session log was found below DSH_SNAPSHOT_SESSIONS_ROOT; "
        f"found there: {found or 'nothing'}",
        hint=f"a log is named {' or '.join(NAMES)}; an agent that keeps none says "
        '`log = "none"` in suite.toml',
    )


def _read(path: Path, name: str, *, unfinished: bool) -> SessionLog:
    try:
        text = Plain(compressed=path.suffix == ".zstd").decode(path.read_bytes())
        text = text[: text.rfind(b"\n") + 1] if unfinished else _whole(text, name)
        return read_session_log(text, name=name)
    except SessionLogError as error:
        raise AgentError(what=f"the agent's log can't be read: {error}", hint=_WRITES) from None
    except ValueError as error:
        what = f"{name}: the agent's log is no zstd stream: {error}"
        raise AgentError(
            what=what, hint="name a log that is not compressed session.jsonl"
        ) from None


def _whole(text: bytes, name: str) -> bytes:
    if text and not text.endswith(b"\n"):
        what = f"{name}: the last line of the agent's log was cut"
        raise AgentError(what=what, hint=_WRITES)
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
