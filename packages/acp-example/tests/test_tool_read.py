import asyncio
import base64
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from workspace import Workspace

from acp_example.tools import ToolResult, read
from acp_example.tools.read import Read

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_read_shows_numbered_lines(ws: Workspace) -> None:
    path = ws.file("src/a.py", "x = 1\n\n\ty = 'é'\r\nlast")

    result = ws.run(Read(), path="src/a.py")

    assert result.text == "src/a.py\n     1\tx = 1\n     2\t\n     3\t\ty = 'é'\n     4\tlast"
    assert result.notice is None
    assert result.truncated is False
    assert result.details == {"path": "src/a.py", "startLine": 1, "lines": 4}
    assert ws.read_files == {path}


def test_read_names_the_next_offset_where_it_stops(ws: Workspace) -> None:
    ws.file("a", "1\n2\n3\n4\n5\n")

    result = ws.run(Read(), path="a", offset=2, limit=3)

    assert result.visible == (
        "a\n     2\t2\n     3\t3\n     4\t4\n\n"
        "[lines 2 to 4 of a longer file; continue with offset 5]"
    )
    assert result.truncated is True
    assert ws.run(Read(), path="a", offset=5, limit=3).visible == "a\n     5\t5"
    assert ws.run(Read(), path="a", limit=5).truncated is False


def test_read_stops_after_so_many_lines(ws: Workspace) -> None:
    ws.file("long", "x\n" * 2001)

    result = ws.run(Read(), path="long", limit=9999)

    assert result.notice == "lines 1 to 2000 of a longer file; continue with offset 2001"


def test_oversized_output_of_read_is_cut_at_whole_lines(ws: Workspace) -> None:
    ws.file("wide", ("é" * 900 + "\n") * 100)

    result = ws.run(Read(), path="wide")

    assert len(result.text.encode()) <= 48 * 1024 + len("wide\n")
    assert result.notice == "lines 1 to 27 of a longer file; continue with offset 28"


@pytest.mark.parametrize("end", ["\n", "", "\nnext"])
def test_read_cuts_a_long_line_at_a_whole_character(ws: Workspace, end: str) -> None:
    ws.file("min.js", "x" + "é" * 80_000 + end)

    first, *rest = ws.run(Read(), path="min.js").text.splitlines()[1:]

    assert first == f"     1\tx{'é' * 999} [158001 more bytes in this line]"
    assert rest == (["     2\tnext"] if end == "\nnext" else [])


def test_read_replaces_bytes_that_are_no_utf8(ws: Workspace) -> None:
    ws.file("latin", b"caf\xe9!")

    assert ws.run(Read(), path="latin").text == "latin\n     1\tcaf\N{REPLACEMENT CHARACTER}!"


def test_read_says_that_a_file_is_empty(ws: Workspace) -> None:
    ws.file("nothing")

    assert ws.run(Read(), path="nothing").visible == "nothing\n(the file is empty)"


def test_read_opens_spilled_output(ws: Workspace) -> None:
    ws.spill.mkdir()
    (ws.spill / "out").write_text("all of it")

    assert ws.run(Read(), path=str(ws.spill / "out")).text == f"{ws.spill}/out\n     1\tall of it"


def test_read_passes_an_image_to_a_model_that_sees(ws: Workspace) -> None:
    ws.images = True
    ws.file("a.png", PNG)

    result = ws.run(Read(), path="a.png")

    assert result.text == "a.png: image/png, 28 bytes"
    assert result.images == [
        {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
    ]
    assert ws.read_files == set()


@pytest.mark.parametrize(
    ("start", "media"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
def test_read_knows_images_by_how_they_begin(ws: Workspace, start: bytes, media: str) -> None:
    ws.images = True
    ws.file("picture.txt", start)

    assert ws.run(Read(), path="picture.txt").images[0]["mimeType"] == media


def test_read_refuses_an_image_for_a_model_that_does_not_see(ws: Workspace) -> None:
    ws.file("a.png", PNG)

    assert ws.error(Read(), path="a.png") == (
        "Error [IMAGE_UNSUPPORTED]: 'a.png' is an image, and this model reads text only"
    )


def test_read_refuses_an_image_that_is_too_large(ws: Workspace) -> None:
    ws.images = True
    path = ws.file("a.png", PNG)
    os.truncate(path, 6_000_000)

    assert ws.error(Read(), path="a.png") == (
        "Error [IMAGE_UNSUPPORTED]: 'a.png' has 6000000 bytes, more than the 5242880 allowed"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "none"}, "PATH_NOT_FOUND]: there is no 'none'"),
        ({"path": "a.txt/b"}, "NOT_A_DIRECTORY]: a parent of 'a.txt/b' is a file, not a directory"),
        ({"path": "folder"}, "NOT_A_FILE]: 'folder' is a directory"),
        ({"path": "pipe"}, "NOT_A_FILE]: 'pipe' is a pipe, a socket or a device"),
        ({"path": "loop"}, "EXECUTION_ERROR]: 'loop': Too many levels of symbolic links"),
        ({"path": "binary"}, "NOT_TEXT]: 'binary' is a binary file of 3 bytes"),
        (
            {"path": "a.txt", "offset": 4},
            "VALIDATION_ERROR]: offset 4 lies past the end: 'a.txt' has 3 lines",
        ),
        (
            {"path": "nothing", "offset": 2},
            "VALIDATION_ERROR]: offset 2 lies past the end: 'nothing' has 0 lines",
        ),
    ],
)
def test_read_says_why_there_is_nothing_to_show(
    ws: Workspace, arguments: dict[str, object], message: str
) -> None:
    ws.file("a.txt", "1\n2\n3\n")
    ws.file("binary", b"a\0b")
    ws.file("nothing")
    ws.file("folder/x")
    os.mkfifo(ws.cwd / "pipe")
    (ws.cwd / "loop").symlink_to("loop")

    assert ws.error(Read(), **arguments) == f"Error [{message}"
    assert ws.read_files == set()


def test_a_cancelled_read_stops_reading(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of the thread ends when the call does, however long the file."""
    ws.file("a", "x\n")
    begun, ended = threading.Event(), threading.Event()

    def endless(_file: object) -> Iterator[str]:
        while True:
            begun.set()
            yield "x"

    window = read._window  # noqa: SLF001  what runs on the thread

    def noted(*arguments: Any) -> ToolResult:  # noqa: ANN401  as the function's
        try:
            return window(*arguments)
        finally:
            ended.set()

    monkeypatch.setattr(read, "_lines", endless)
    monkeypatch.setattr(read, "_window", noted)

    async def scenario() -> None:
        arguments = {"path": "a", "offset": 10**12}
        task = asyncio.ensure_future(Read().run(arguments, ws.context()))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())

    assert ended.wait(5)
    assert ws.read_files == set()


def test_read_does_not_leave_the_workspace(ws: Workspace) -> None:
    assert ws.error(Read(), path="../x") == (
        "Error [PATH_OUTSIDE_ALLOWED_ROOT]: cannot read '../x': "
        f"it leads out of the workspace {str(ws.cwd)!r}"
    )
