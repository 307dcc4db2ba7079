"""Header classes: what sessions are told, compared with the sidecars of the class's pin. No I/O."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import zip_longest

from snapshot_harness.json_value import Json
from snapshot_harness.normalize import HeaderPair
from snapshot_harness.values import differences, fingerprint, in_sight, shown

_MARK = re.compile(r"<!-- header ([1-9]\d*)( without prompt)? -->")
_ESCAPED = re.compile(r"\\*<!-- header .*")
_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class Told:
    """One prompt and one list of tools, as a session was told them."""

    system: str | None
    tools: Json

    @property
    def key(self) -> str:
        """A text that is equal for equal headers only."""
        return fingerprint([self.system, self.tools])


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderVerdict:
    """What one class's headers came to."""

    header_class: str
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every session was told what the pin says."""
        return not self.problems


class SidecarError(ValueError):
    """A sidecar is not in the form that refresh writes."""


def collect(pairs: Iterable[HeaderPair]) -> list[Told]:
    """Return each distinct header once, in order of first sight."""
    found: dict[str, Told] = {}
    for pair in pairs:
        whole = pair.system is None or isinstance(pair.system, str)
        told = Told(pair.system if whole else _pretty(pair.system), pair.tools)
        found.setdefault(told.key, told)
    return list(found.values())


def system_bytes(headers: Sequence[Told]) -> bytes:
    """Return the prompts as the Markdown sidecar."""
    parts = []
    for number, told in enumerate(headers, 1):
        if told.system is None:
            parts.append(f"<!-- header {number} without prompt -->\n")
            continue
        lines = told.system.split("\n")
        lines = [f"\\{line}" if _ESCAPED.fullmatch(line) else line for line in lines]
        parts.append(f"<!-- header {number} -->\n" + "\n".join(lines) + "\n")
    return "".join(parts).encode(errors="surrogatepass")


def tools_bytes(headers: Sequence[Told]) -> bytes:
    """Return the tools as the JSON sidecar: a list of what each header lists."""
    return f"{_pretty([told.tools for told in headers])}\n".encode(errors="surrogatepass")


def stable_tools(new: bytes, old: bytes | None) -> bytes:
    """Return the tools' sidecar with keys in the order in which the old one has them.

    An agent may write the keys of an object in another order each time.
    """
    try:
        before = json.loads(old or b"null")
    except ValueError:
        return new
    ordered = _ordered_as(json.loads(new), before)
    return f"{_pretty(ordered)}\n".encode(errors="surrogatepass")


def _ordered_as(value: Json, before: Json) -> Json:
    if isinstance(value, dict) and isinstance(before, dict):
        keys = [*(key for key in before if key in value), *(k for k in value if k not in before)]
        return {key: _ordered_as(value[key], before.get(key)) for key in keys}
    if isinstance(value, list) and isinstance(before, list):
        named, known = _by_name(value), _by_name(before)
        if isinstance(named, dict) and isinstance(known, dict):
            return [_ordered_as(tool, known.get(name)) for name, tool in named.items()]
        pairs = zip_longest(value, before[: len(value)])
        return [_ordered_as(one, other) for one, other in pairs]
    return value


def read_sidecars(system: bytes, tools: bytes) -> list[Told]:
    """Return the headers that a pin's two sidecars hold.

    Raises:
        SidecarError: They are not what refresh writes, or hold different numbers of headers.
    """
    try:
        prompts = _read_prompts(system.decode(errors="surrogatepass"))
    except UnicodeDecodeError as error:
        raise SidecarError(f"the prompts are not UTF-8 at byte {error.start}") from None
    try:
        listed = json.loads(tools)
    except (ValueError, RecursionError) as error:
        raise SidecarError(f"the tool schemas are not JSON: {error}") from None
    if not isinstance(listed, list) or len(listed) != len(prompts):
        count = len(listed) if isinstance(listed, list) else "no list"
        raise SidecarError(f"{len(prompts)} prompts beside {count} of tool schemas")
    return [Told(system, tools) for system, tools in zip(prompts, listed, strict=True)]


def judge(
    header_class: str, pinned: Sequence[Told], seen: Mapping[str, Sequence[Told]]
) -> HeaderVerdict:
    """Compare what the scenarios' sessions were told with what the class's pin holds.

    `seen` is by scenario. Equal texts are told once, with all scenarios concerned.
    """
    known = {told.key for told in pinned}
    strange: dict[str, tuple[Told, list[str]]] = {}
    for scenario, headers in seen.items():
        for told in headers:
            if told.key not in known:
                strange.setdefault(told.key, (told, []))[1].append(scenario)
    # Two headers of one prompt may differ from their pins in the same words.
    concerned: dict[str, list[str]] = {}
    for told, names in strange.values():
        concerned.setdefault(_difference(told, pinned), []).extend(names)
    problems = tuple(f"{what}\n  {_seen_in(names)}" for what, names in concerned.items())
    return HeaderVerdict(header_class=header_class, problems=problems)


def _seen_in(scenarios: Sequence[str]) -> str:
    names = sorted(set(scenarios))
    count = "1 scenario" if len(names) == 1 else f"{len(names)} scenarios"
    return f"seen in {count}: {_list(names)}"


def _difference(told: Told, pinned: Sequence[Told]) -> str:
    if not pinned:
        return "a header, and the class has no pin to compare it with"
    nearest = max(pinned, key=lambda one: (one.tools == told.tools) + (one.system == told.system))
    lines = []
    if nearest.system != told.system:
        lines += [
            "the prompt differs from the pinned one:",
            *_text_diff(nearest.system, told.system),
        ]
    if fingerprint(nearest.tools) != fingerprint(told.tools):
        lines += ["the tools differ from the pinned ones:", *_tools_diff(nearest.tools, told.tools)]
    return "\n".join(lines)


def _list(names: Sequence[str], limit: int = 12) -> str:
    left = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {left} more" if left > 0 else "")


def _text_diff(pinned: str | None, told: str | None) -> list[str]:
    left, right = ((text or "").split("\n") for text in (pinned, told))
    lines = list(unified_diff(left, right, n=1, lineterm=""))[2:]
    cut = [f"  {line}" for line in in_sight(lines)[:_DIFF_LINES]]
    more = len(lines) - _DIFF_LINES
    return [*cut, f"  … and {more} more lines"] if more > 0 else cut


def _tools_diff(pinned: Json, told: Json) -> list[str]:
    lines: list[str] = []
    for path, left, right in differences(_by_name(pinned), _by_name(told)):
        if len(lines) >= 3 * 5:
            lines.append("  … and more")
            break
        lines.append(f"  at:       {path}")
        lines += [f"  expected: {shown(left, right)}", f"  actual:   {shown(right, left)}"]
    return lines or ["  only their order differs"]


def _by_name(tools: Json) -> Json:
    """Return a list of tools by their names, where each has one of its own."""
    if not isinstance(tools, list):
        return tools
    names = [tool.get("name") if isinstance(tool, dict) else None for tool in tools]
    unique = {name for name in names if isinstance(name, str)}
    return dict(zip(names, tools, strict=True)) if len(unique) == len(tools) else tools


def _read_prompts(text: str) -> list[str | None]:
    prompts: list[list[str] | None] = []
    lines = text.split("\n")
    if lines.pop() != "":
        raise SidecarError("the prompts' last line does not end")
    for line in lines:
        match = _MARK.fullmatch(line)
        if match is not None:
            if int(match[1]) != len(prompts) + 1:
                raise SidecarError(f"header {match[1]} stands where {len(prompts) + 1} should")
            prompts.append(None if match[2] else [])
            continue
        last = prompts[-1] if prompts else None
        if last is None:
            raise SidecarError("a line stands before the first `<!-- header 1 -->`")
        last.append(line[1:] if _ESCAPED.fullmatch(line) else line)
    return [None if prompt is None else "\n".join(prompt) for prompt in prompts]


def _pretty(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
