"""What of a frame moves besides its ids and paths: JSON-RPC ids, cuts by time. No I/O."""

import json
from collections.abc import Sequence

from snapshot_harness.order import Frame

MARKER = "snapshot"
"""The key of a line that the harness put into the transcript, not the agent."""

_ANSWERED = frozenset({"method", "result", "error"})
"""A frame has one of these; without any, an `id` is something else."""

_CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"})


def number_rpc_ids(frames: Sequence[Frame], *, merged: bool) -> list[Frame]:
    """Return the frames with their ids numbered by first sight.

    The client's ids and the agent's are apart, unless `merged`. Ids of an
    agent that was restarted are new ids.
    """
    numbers: dict[tuple[int, str, str], int] = {}
    counts: dict[str, int] = {}
    boot = 0

    def number(side: str, value: object) -> int:
        side = "" if merged else side
        key = (boot if side == "agent" else 0, side, json.dumps(value, sort_keys=True))
        if key not in numbers:
            numbers[key] = counts[side] = counts.get(side, 0) + 1
        return numbers[key]

    numbered: list[Frame] = []
    for frame in frames:
        boot += MARKER in frame
        if frame.get("id") is not None and _ANSWERED & frame.keys():
            side = "agent" if "method" in frame else "client"
            frame = {**frame, "id": number(side, frame["id"])}  # noqa: PLW2901  a copy, the caller's stays
        elif _cancels(frame):
            params = {**frame["params"], "requestId": number("agent", frame["params"]["requestId"])}
            frame = {**frame, "params": params}  # noqa: PLW2901  as above
        numbered.append(frame)
    return numbered


def coalesce(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames with neighbouring message chunks of one kind joined into one."""
    joined: list[Frame] = []
    for frame in frames:
        if joined and _frame_but_text(frame) is not None:
            last = joined[-1]
            if _frame_but_text(last) == _frame_but_text(frame):
                joined[-1] = _with_text(last, _text(last) + _text(frame))
                continue
        joined.append(frame)
    return joined


def _cancels(frame: Frame) -> bool:
    params = frame.get("params")
    return (
        frame.get("method") == "$/cancel_request"
        and isinstance(params, dict)
        and params.get("requestId") is not None
    )


def _text(frame: Frame) -> str:
    text: str = frame["params"]["update"]["content"]["text"]
    return text


def _with_text(frame: Frame, text: str) -> Frame:
    params = frame["params"]
    update = params["update"]
    content = {**update["content"], "text": text}
    return {**frame, "params": {**params, "update": {**update, "content": content}}}


def _frame_but_text(frame: Frame) -> str | None:
    """Return all of a message chunk but its text; `None` for any other frame."""
    params = frame.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    content = update.get("content") if isinstance(update, dict) else None
    if not isinstance(update, dict) or not isinstance(content, dict):
        return None
    if update.get("sessionUpdate") not in _CHUNKS:
        return None
    if content.get("type") != "text" or not isinstance(content.get("text"), str):
        return None
    return json.dumps(_with_text(frame, ""), sort_keys=True)
