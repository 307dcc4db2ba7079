"""Lists of findings, as a result that fits into what a model should read."""

from collections.abc import Sequence

from acp_example.bounds import OUTPUT_BYTES, Limit, cut_end
from acp_example.tools import ToolContext, ToolResult


def listing(
    lines: Sequence[str], context: ToolContext, *, name: str, nothing: str, notices: Sequence[str]
) -> ToolResult:
    """Return whole lines within the limit; what was left out, and why, is said once.

    Where they are too many, all of them are kept in a file; its real path counts against the
    budget.
    """
    shown = list(lines)
    if not Limit(lines=len(lines)).admits("\n".join(lines)):
        rest = _kept(lines, context, name)
        # The number is at most as long as that of all lines.
        room = (
            OUTPUT_BYTES
            - len("; ".join([*notices, f"only the first {len(lines)} lines fit{rest}"]))
            - 4
        )
        fits = cut_end("\n".join(lines), Limit(size=room, lines=len(lines)))
        shown = shown[: max(1, fits.count("\n"))]
        fit = "first line fits" if len(shown) == 1 else f"first {len(shown)} lines fit"
        notices = [*notices, f"only the {fit}{rest}"]
    return ToolResult(
        text="\n".join(shown) or nothing,
        notice="; ".join(notices) or None,
        truncated=bool(notices),
        details={"count": len(lines), "shown": len(shown)},
    )


def _kept(lines: Sequence[str], context: ToolContext, name: str) -> str:
    if context.spill is None:
        return ""
    path = context.spill.write(context.call, f"{name}.txt", "\n".join([*lines, ""]))
    return f"; read {str(path)!r} for all of them"
