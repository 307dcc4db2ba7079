"""Zstandard from wherever this Python has it; imported only where a log is compressed."""

import importlib
import sys
from typing import Any, Final

_MODULE: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_MAGIC: Final = b"\x28\xb5\x2f\xfd"

# A last block without content: what ends a frame that nobody finished.
END_OF_FRAME: Final = b"\x01\x00\x00"


def _zstd() -> Any:  # noqa: ANN401  a module with another name in each Python
    return importlib.import_module(_MODULE)


def compressor() -> Any:  # noqa: ANN401  as above
    """Return what compresses one frame, piece by piece."""
    return _zstd().ZstdCompressor()


def decompress(data: bytes) -> bytes:
    """Return all that can be read of a file's frames; a torn end is left out.

    Raises:
        ValueError: This is no zstd data.
    """
    module = _zstd()
    text = b""
    while data:
        frame = module.ZstdDecompressor()
        try:
            text += frame.decompress(data)
        except module.ZstdError as error:
            raise ValueError(str(error)) from None
        if not frame.eof:
            break
        data = frame.unused_data
    return text


def whole(data: bytes) -> tuple[int, bool]:
    """Return how many bytes of a file are whole blocks, and whether its last frame is finished.

    A write is one block or more, so what is torn is the end of the last write.
    """
    place, finished = 0, True
    while len(data) > place:
        after = _header_end(data, place)
        if after is None:
            return place, finished
        place, finished = after, False
        while not finished:
            block = _block_end(data, place)
            if block is None:
                return place, False
            place, finished = block
    return place, True


def _header_end(data: bytes, start: int) -> int | None:
    """Return where a frame's first block begins; None where its header is torn."""
    place = start + len(_MAGIC)
    if len(data) <= place or data[start:place] != _MAGIC:
        return None
    flags = data[place]
    single = flags & 0x20
    size = (1 if single else 0, 2, 4, 8)[flags >> 6]
    end = place + 1 + (0 if single else 1) + (0, 1, 2, 4)[flags & 3] + size
    return end if end <= len(data) else None


def _block_end(data: bytes, start: int) -> tuple[int, bool] | None:
    """Return where a block ends and whether it is its frame's last; None where it is torn."""
    if len(data) < start + 3:
        return None
    header = int.from_bytes(data[start : start + 3], "little")
    repeated = (header >> 1) & 3 == 1
    end = start + 3 + (1 if repeated else header >> 3)
    return (end, bool(header & 1)) if end <= len(data) else None
