"""The tool that shows a window of a text file, or a picture."""

import asyncio
import base64
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from acp_example.exceptions import ToolError
from acp_example.tools import ToolContext, ToolResult, ToolSpec
from acp_example.tools.files import opened, size_of
from acp_example.tools.schema import integer, name, object_of, text_of

_LINES: Final = 2000
_BYTES: Final = 48 * 1024
_LINE_BYTES: Final = 2000
_IMAGE_LIMIT: Final = 5 * 1024 * 1024
_IMAGES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def _title(given: Mapping[str, Any]) -> str:
    return f"Read {text_of(given, 'path', 'a file')}"


def _locations(given: Mapping[str, Any]) -> list[str]:
    path = text_of(given, "path")
    return [path] if path else []


class Read:
    """Reads lines of a file, numbered, as many as a model should see at once."""

    spec = ToolSpec(
        name="read",
        description=(
            "Read a text file, or look at an image. Lines come numbered: number, tab, line. "
            f"At most {_LINES} lines are shown at once; continue with offset."
        ),
        schema=object_of(
            {
                "path": name("The file, relative to the working directory or absolute."),
                "offset": integer("The first line to show, from 1."),
                "limit": integer("How many lines to show."),
            },
            required=["path"],
        ),
        kind="read",
        mode="parallel",
        path_policy="read",
        timeout_s=30,
        annotations={"readOnlyHint": True},
        title=_title,
        locations=_locations,
    )

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Show the file."""
        path = context.policy.resolve(arguments["path"], access="read")
        shown = context.policy.display(path)
        with opened(path, shown) as file:
            start = file.read(8192)
            media = image_type(start)
            if media is not None:
                return _picture(shown, start, file=file, media=media, context=context)
            if b"\0" in start:
                size = size_of(file)
                raise ToolError("NOT_TEXT", f"{shown!r} is a binary file of {size} bytes")
        stop = threading.Event()
        try:
            # On a thread, since a line far down a huge file takes its time.
            result = await asyncio.to_thread(_window, path, shown, arguments, stop)
        finally:
            stop.set()
        context.read_files.add(path)
        return result


def image_type(start: bytes) -> str | None:
    """Return the media type of the picture that begins with these bytes."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _IMAGES if start.startswith(magic)), None)


def _picture(
    shown: str, start: bytes, *, file: BinaryIO, media: str, context: ToolContext
) -> ToolResult:
    if not context.images:
        raise ToolError(
            "IMAGE_UNSUPPORTED", f"{shown!r} is an image, and this model reads text only"
        )
    size = size_of(file)
    if size > _IMAGE_LIMIT:
        raise ToolError(
            "IMAGE_UNSUPPORTED", f"{shown!r} has {size} bytes, more than the {_IMAGE_LIMIT} allowed"
        )
    data = base64.b64encode(start + file.read()).decode("ascii")
    return ToolResult(
        text=f"{shown}: {media}, {size} bytes",
        images=[{"type": "image", "mimeType": media, "data": data}],
        details={"path": shown, "mimeType": media, "bytes": size},
    )


def _window(path: Path, shown: str, given: Mapping[str, Any], stop: threading.Event) -> ToolResult:
    """Render the lines that were asked for, until the budget is spent."""
    offset, limit = given.get("offset", 1), min(given.get("limit", _LINES), _LINES)
    rendered: list[str] = []
    spent = 0
    more = False
    number = 0
    with opened(path, shown) as file:
        for number, line in enumerate(_lines(file), start=1):
            if stop.is_set():
                break
            if number < offset:
                continue
            text = f"{number:6}\t{line}"
            spent += len(text.encode("utf-8", "replace")) + 1
            more = len(rendered) == limit or (spent > _BYTES and bool(rendered))
            if more:
                break
            rendered.append(text)
    if not rendered and (number or offset > 1):
        raise ToolError(
            "VALIDATION_ERROR", f"offset {offset} lies past the end: {shown!r} has {number} lines"
        )
    last = offset + len(rendered) - 1
    notice = f"lines {offset} to {last} of a longer file; continue with offset {last + 1}"
    return ToolResult(
        text="\n".join([shown, *rendered]) if rendered else f"{shown}\n(the file is empty)",
        notice=notice if more else None,
        truncated=more,
        details={"path": shown, "startLine": offset, "lines": len(rendered)},
    )


def _lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a file without their ends, each cut to what may be shown of it."""
    while line := file.readline(_LINE_BYTES):
        cut = 0
        while not line.endswith(b"\n") and (rest := file.readline(65_536)):
            cut += len(rest.removesuffix(b"\n"))
            if rest.endswith(b"\n"):
                break
        text = line.rstrip(b"\r\n").decode("utf-8", "replace")
        yield f"{text.rstrip(chr(0xFFFD))} [{cut} more bytes in this line]" if cut else text
