"""The one place where this agent asks a model, and what may stand in its place."""

from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from llm_replay import ProviderAdapter, StreamHandler

Undo = Callable[[], None]


@dataclass(frozen=True)
class Request:
    """What the agent wants to know, and who asks."""

    messages: list[dict[str, Any]]
    session_id: str
    lineage: str
    purpose: str = "turn"


class Models:
    """A runtime that replay fits into: handlers go first, then the provider."""

    def __init__(self) -> None:
        self.handlers: list[StreamHandler] = []
        self.providers: dict[str, ProviderAdapter] = {}

    def use(self, handler: StreamHandler, /) -> Undo:
        """Put a handler in front of the providers; return how to take it away."""
        self.handlers.append(handler)
        return lambda: self.handlers.remove(handler)

    def register_provider(self, provider_id: str, adapter: ProviderAdapter, /) -> Undo:
        """Offer a provider under a name; return how to take it away."""
        self.providers[provider_id] = adapter

        def undo() -> None:
            with suppress(KeyError):
                del self.providers[provider_id]

        return undo

    def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        """Return the chunks of the next answer. A handler that returns `None` passes it on."""
        for handler in self.handlers:
            answer = handler(request)
            if answer is not None:
                return answer
        (provider,) = self.providers.values()
        return provider.stream(request)
