"""How one directory can be spelled on each platform, and finding it in a text. No I/O.

A run's own roots are unique names, found wherever they stand. The directories
of a foreign log are ordinary names, found between boundaries only.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from llm_replay.tokens import Roots, tokenize_roots

_PRIVATE = re.compile(r"/(?:private/)?(?=(?:tmp|var|etc)(?:/|$))")
_DRIVE = re.compile(r"(?:[\\/]{2}\?[\\/])?([A-Za-z]):[\\/]+(.*)", re.DOTALL)
_UNC = re.compile(r"[\\/]{2}(?:\?[\\/]UNC[\\/])?([^\\/?]+)[\\/]+(.*)", re.DOTALL | re.IGNORECASE)
_SHORT = re.compile(r"([^~.]{1,8})~\d+(?:\..{1,3})?")

_AROUND = r"\s<>'\"`()\[\]{},;:!?="
_BEFORE = rf"(?:(?<=[{_AROUND}])|(?<=file://)|(?<=file:///)|^)"
_AFTER = rf"(?=$|[/\\{_AROUND}]|\.(?:$|[{_AROUND}]))"
_SEPARATOR = r"[\\/]+"
_REST = re.compile(r"(\{\{(?:cwd|home|tmp|sessions|spill|run)\}\})((?:\\+[^\\/:*?\"<>|\s{}]+)+\\*)")


def spellings(path: str) -> tuple[str, ...]:
    """Return the ways in which a POSIX directory is spelled, longest first.

    On macOS `/tmp`, `/var` and `/etc` are links into `/private`.
    """
    match = _PRIVATE.match(path)
    if match is None:
        return (path,)
    rest = path[match.end() :]
    return (f"/private/{rest}", f"/{rest}")


def path_pattern(path: str) -> str:
    r"""Return a pattern for every spelling of a directory of any platform.

    A Windows path is found with either separator, doubled as in JSON or not,
    with or without the `\\?\` prefix, in either case, as a file URL, and with
    short names (`RUNNER~1`) in place of long ones.
    """
    drive = _DRIVE.fullmatch(path)
    unc = _UNC.fullmatch(path) if drive is None else None
    if drive is not None:
        start = rf"(?:{_SEPARATOR}\?{_SEPARATOR})?{drive[1]}(?::|%3A){_SEPARATOR}"
        return f"(?i:{start}{_segments(drive[2])})"
    if unc is not None:
        start = rf"{_SEPARATOR}(?:\?{_SEPARATOR}UNC{_SEPARATOR})?{re.escape(unc[1])}{_SEPARATOR}"
        return f"(?i:{start}{_segments(unc[2])})"
    return "|".join(re.escape(one) for one in spellings(path))


def whole_path_pattern(path: str) -> str:
    """Return a pattern for every spelling of a directory, between boundaries only."""
    return f"{_BEFORE}(?:{path_pattern(path)}){_AFTER}"


def same_segment(left: str, right: str) -> bool:
    """Tell whether two names of a Windows directory may be one: a short name and its long one."""
    if left.casefold() == right.casefold():
        return True
    pair = (left, right) if _SHORT.fullmatch(left) else (right, left)
    return _SHORT.fullmatch(pair[0]) is not None and bool(
        re.fullmatch(_short_forms(pair[1]), pair[0], re.IGNORECASE)
    )


def forward_slashes(text: str) -> str:
    """Return a text in which paths below a token are spelled with `/`."""
    return _REST.sub(lambda match: match[1] + re.sub(r"\\+", "/", match[2]), text)


def tokenize_foreign(text: str, path: str, token: str) -> str:
    """Put a token in place of a foreign log's directory, between boundaries only."""
    return _foreign(path).sub(lambda _: token, text)


class RootNames:
    """The directories to find in what a run put out: its own, and those of a foreign log."""

    def __init__(self, roots: Roots | None, *, foreign: Sequence[str] = ()) -> None:
        self._own = [roots, *_aliases(roots)] if roots is not None else []
        # Longest first: one foreign directory may stand below another.
        self._foreign = sorted({path for path in foreign if is_absolute(path)}, key=len)[::-1]

    def in_text(self, text: str) -> str:
        """Return `text` with every directory as its token, each spelled one way."""
        before = text
        text = text.replace("/private{{", "{{")
        for roots in self._own:
            text = tokenize_roots(text, roots)
        for path in self._foreign:
            text = tokenize_foreign(text, path, "{{cwd}}")
        if text == before:
            return text
        return forward_slashes(text.replace("/private{{", "{{"))


def is_absolute(path: str) -> bool:
    """Tell whether a path is absolute on any platform, and more than a root."""
    return len(path.strip("/\\")) > 1 and (
        path.startswith("/") or bool(_DRIVE.fullmatch(path)) or bool(_UNC.fullmatch(path))
    )


def _aliases(roots: Roots) -> Iterator[Roots]:
    """Yield the roots as an agent would spell them that did not resolve `/private`."""
    names = ("cwd", "home", "tmp", "sessions", "spill", "run")
    plain = {name: _shortest(getattr(roots, name)) for name in names}
    if any(plain[name] != getattr(roots, name) for name in names):
        yield Roots(**plain)


def _shortest(path: str | None) -> str | None:
    return None if path is None else spellings(path)[-1]


@lru_cache(maxsize=32)
def _foreign(path: str) -> re.Pattern[str]:
    return re.compile(whole_path_pattern(path))


def _segments(rest: str) -> str:
    parts = [part for part in re.split(_SEPARATOR, rest) if part]
    return _SEPARATOR.join(f"(?:{re.escape(part)}|{_short_forms(part)})" for part in parts)


def _short_forms(long: str) -> str:
    """Return a pattern for the 8.3 names that a long name may have."""
    stem, dot, extension = long.rpartition(".")
    stem = stem if dot else long
    kept = re.sub(r"[^A-Za-z0-9_$%'@~!(){}^#&-]", "", stem)[:6]
    suffix = re.escape(f".{extension[:3]}") if dot else ""
    return rf"{re.escape(kept)}~\d{suffix}" if kept else "(?!)"
