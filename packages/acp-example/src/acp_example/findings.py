"""What a look at the set-up found. No I/O."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what it is, and how it stands; a hint where it needs attention."""

    about: str
    state: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{'ok ' if self.hint is None else '!! '} {self.about:<12} {self.state}"
        return text if self.hint is None else f"{text}\n{'':<17}hint: {self.hint}"
