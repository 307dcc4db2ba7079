"""The provider plugin: an OpenAI-compatible endpoint behind the model seam."""

from collections.abc import Callable

from acp_example.plugins import Context
from acp_example.provider.adapter import ChatAdapter
from acp_example.provider.config import Config

__all__ = ["ChatAdapter", "Config", "apply", "inject", "name"]

name = "chat-completions"
inject = ("llm", "directory")


def apply(context: Context, config: Config) -> Callable[[], None]:
    """Register the endpoint as a provider; return what takes it away again."""
    adapter = ChatAdapter(config, directory=context.service("directory"))
    undo: Callable[[], None] = context.service("llm").register_provider(config.id, adapter)
    return undo
