"""Which paths a session may touch, judged by where they really lead."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acp_example.exceptions import ToolError

Access = Literal["read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """A path policy: what lies below one of the roots may be read, or written.

    A path counts as what it leads to: `..` and symbolic links are followed first, as the
    operating system would. None for the roots of an access means anywhere.
    """

    base: Path
    readable: tuple[Path, ...] | None
    writable: tuple[Path, ...] | None

    def resolve(self, path: str, *, access: Access) -> Path:
        """Return where a path really leads.

        Raises:
            ToolError: It leads out of every root (PATH_OUTSIDE_ALLOWED_ROOT), nothing may be
                written at all (PERMISSION_DENIED), or it is no path (VALIDATION_ERROR).
        """
        real = self._real(path)
        roots = self.readable if access == "read" else self.writable
        if roots is None or any(real.is_relative_to(root) for root in roots):
            return real
        if not roots:
            raise ToolError(
                "PERMISSION_DENIED", f"cannot {access} {path!r}: this session is read-only"
            )
        raise ToolError(
            "PATH_OUTSIDE_ALLOWED_ROOT",
            f"cannot {access} {path!r}: it leads out of the workspace {str(self.base)!r}",
        )

    def display(self, path: Path) -> str:
        """Spell a real path as a model would: relative to the base where it lies below."""
        return str(path.relative_to(self.base) if path.is_relative_to(self.base) else path)

    def _real(self, path: str) -> Path:
        if not path:
            raise ToolError("VALIDATION_ERROR", "a path is empty")
        try:
            # Not `Path.resolve`: before Python 3.13 it raises on a loop of symbolic links.
            return Path(os.path.realpath(self.base / path))
        except ValueError:
            raise ToolError("VALIDATION_ERROR", f"{path!r} cannot be a path") from None


def roots_for(mode: str, *, cwd: Path, others: Iterable[Path] = ()) -> Roots:
    """Return the policy of a permission mode; `others` are spilled output and the temp folder."""
    base = Path(os.path.realpath(cwd))
    inside = (base, *(Path(os.path.realpath(other)) for other in others))
    match mode:
        case "full-access":
            return Roots(base=base, readable=None, writable=None)
        case "workspace-write":
            return Roots(base=base, readable=inside, writable=inside)
        case _:
            return Roots(base=base, readable=inside, writable=())
