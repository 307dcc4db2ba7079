"""What can go wrong in the agent, told apart by whose fault it is."""

from collections.abc import Sequence


class AcpExampleError(Exception):
    """The agent cannot do what it was asked to."""


class ConfigError(AcpExampleError):
    """The composition says something impossible; every problem is listed."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class PluginError(AcpExampleError):
    """A plugin could not be loaded or applied."""

    def __init__(self, *, plugin: str, why: str, hint: str) -> None:
        self.plugin = plugin
        super().__init__(f"plugin {plugin!r}: {why}\n  hint: {hint}")


class ModelError(AcpExampleError):
    """The model's stream failed, in the provider's words."""

    def __init__(
        self,
        *,
        code: str,
        message: str,
        status: int | None = None,
        retry_after_ms: int | None = None,
        request_id: str | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.request_id = request_id
        super().__init__(f"{code}: {message}")


class LogMismatchError(AcpExampleError):
    """A session's log does not tell what happened in the session."""

    def __init__(self, *, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: the log tells another history than the session had\n"
            "  hint: this is a fault of the agent; keep the log and report it"
        )


class ToolError(AcpExampleError):
    """A tool refused or failed in a way that the model can recover from."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"Error [{code}]: {message}")


class FatalToolError(ToolError):
    """A tool failed in a way that must end the turn."""
