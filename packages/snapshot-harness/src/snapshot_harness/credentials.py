"""What looks like a credential, or is one of this environment's. No I/O."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=[0-9[]m))"
"""Where a word begins, also behind what ends in a letter: an escape of JSON, or a colour's."""

_FORMATS: tuple[tuple[str, str, str], ...] = (
    ("a private key", "-----BEGIN", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("an API key", "sk-", r"sk-(?:ant-|proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{20,}"),
    ("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("a GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{30,}"),
    ("a GitLab token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("an AWS access key id", "AKIA ASIA", r"(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("a Google API key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("a Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("an npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("a PyPI token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    ("a Stripe key", "k_live_", r"[rs]k_live_[A-Za-z0-9]{20,}"),
    (
        "a JSON web token",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    ),
    (
        "an authorization header",
        "uthorization UTHORIZATION",
        r"(?i:authorization\W{1,8}(?:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,})",
    ),
    ("a password in a URL", "://", r"[a-z][a-z0-9+.-]*://[^\s/:@\"'\\]+:[^\s/:@\"'\\{}$<*]{6,}@"),
)
"""What it is, words of which each has one, and the pattern; the words are looked for first."""

_PATTERNS = [(what, words.split(), re.compile(_START + form)) for what, words, form in _FORMATS]
_KEY_LIKE = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)(?:_|$)",
    re.IGNORECASE,
)
_MIN_VALUE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A credential: where it stands and what it is, never the thing itself."""

    line: int
    column: int
    what: str


def find_credentials(text: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what looks like a credential, or equals the value of a key-like variable."""
    for start, _, what in sorted(_spans(text, environ)):
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        yield Finding(line=line, column=column, what=what)


def redact(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` without credentials: for error texts and kept files."""
    pieces = []
    position = 0
    for start, end, what in sorted(_spans(text, environ)):
        if end <= position:
            continue
        pieces += [text[position : max(start, position)], f"[{what}]"]
        position = end
    return "".join([*pieces, text[position:]])


def secret_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of key-like variables that are long enough to be no accident."""
    return {
        value: name
        for name, value in sorted(environ.items())
        if len(value) >= _MIN_VALUE and _KEY_LIKE.search(name)
    }


def _spans(text: str, environ: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    for value, name in secret_values(environ).items():
        for spelled in _spellings(value):
            start = text.find(spelled)
            while start >= 0:
                yield start, start + len(spelled), f"the value of {name}"
                start = text.find(spelled, start + len(spelled))
    for what, words, pattern in _PATTERNS:
        if any(word in text for word in words):
            yield from ((*match.span(), what) for match in pattern.finditer(text))


def _spellings(value: str) -> set[str]:
    """Return a value as it is, and as JSON spells it, and JSON in JSON, and that in JSON again."""
    found = {value}
    for ensure_ascii in (False, True):
        spelled = value
        for _ in range(3):
            spelled = json.dumps(spelled, ensure_ascii=ensure_ascii)[1:-1]
            found.add(spelled)
    return found
