"""The provider plugin: an OpenAI-compatible endpoint behind the model seam."""

from collections.abc import Callable
from typing import Any, Protocol

from acp_example.provider.adapter import ChatAdapter
from acp_example.provider.config import Config

__all__ = ["ChatAdapter", "Config", "apply", "inject", "name"]

name = "chat-completions"
inject = ("llm",)


class _Context(Protocol):
    def service(self, name: str, /) -> Any: ...  # noqa: ANN401  services are told apart by name


def apply(context: _Context, config: Config) -> Callable[[], None]:
    """Register the endpoint as a provider; return what takes it away again."""
    undo: Callable[[], None] = context.service("llm").register_provider(
        config.id, ChatAdapter(config)
    )
    return undo
