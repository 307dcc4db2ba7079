"""What a runtime offers to replay, and what replay offers to a runtime. No I/O."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from llm_replay.chunks import Chunk

StreamHandler: TypeAlias = Callable[[Any], AsyncGenerator[Chunk, None] | None]
"""Answer a stream request, or return `None` to pass it on to the next handler."""

Undo: TypeAlias = Callable[[], None]
"""Take a registration back."""

RetryMode: TypeAlias = Literal["normal", "always"]
Modality: TypeAlias = Literal["text", "image"]

RETRY_CODES = ("EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How a provider's failures are retried; the runtime follows it, replay only hands it over.

    `instant` changes no decision and no delay that is logged: it only means that nobody sleeps.
    """

    mode: RetryMode = "normal"
    max_retries: int = 5
    codes: tuple[str, ...] = RETRY_CODES
    initial_delay_ms: int = 500
    max_delay_ms: int = 10_000
    multiplier: float = 2.0
    jitter_ratio: float = 0.1
    instant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """One model of a provider's catalogue; `max_output_tokens` is its default output cap."""

    id: str
    name: str = ""
    context_window: int | None = None
    input_modalities: tuple[Modality, ...] = ("text",)
    max_output_tokens: int | None = None
    reasoning_efforts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Name a nameless model by its id."""
        if not self.name:
            object.__setattr__(self, "name", self.id)


class ProviderAdapter(Protocol):
    """A provider as a runtime registers it: a catalogue, and one way to ask for a stream."""

    @property
    def name(self) -> str:
        """What a person reads."""
        ...

    @property
    def models(self) -> Sequence[ModelInfo]:
        """The catalogue, in the order in which a client is shown it."""
        ...

    @property
    def retry_policy(self) -> RetryPolicy | None:
        """How failures are retried; `None` leaves it to the runtime."""
        ...

    def stream(self, request: Any, /) -> AsyncGenerator[Chunk, None]:  # noqa: ANN401  the runtime's own request
        """Answer `request`; whoever reads the stream closes it."""
        ...


class Runtime(Protocol):
    """All that replay needs of a runtime.

    A stream request is any object with `messages`, `session_id` and, where the runtime has
    them, `lineage` and `purpose`.
    """

    def use(self, handler: StreamHandler, /) -> Undo:
        """Put `handler` in front of the adapters."""
        ...

    def register_provider(self, provider_id: str, adapter: ProviderAdapter, /) -> Undo:
        """Offer `adapter` under `provider_id`."""
        ...
