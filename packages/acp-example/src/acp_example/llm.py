"""The model seam: a waterfall of handlers, with the registered providers at its end."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from acp_example.exceptions import ModelError
from llm_replay.chunks import Chunk, Failure
from llm_replay.exceptions import ReplayError
from llm_replay.seam import ModelInfo, ProviderAdapter, StreamHandler, Undo

Purpose = Literal["turn", "compaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model: all it will see, and who asks."""

    provider: str
    model: str
    system: str | None
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    session_id: str | None
    lineage: str | None
    purpose: Purpose = "turn"
    reasoning_effort: str | None = None
    tool_choice: str | None = None


class Llm:
    """Routes each request to whoever answers it first.

    Handlers are asked in the order they were added, and each may pass on by returning None; then
    the adapter registered for the request's provider answers.
    """

    def __init__(self) -> None:
        self._handlers: list[StreamHandler] = []
        self._providers: dict[str, ProviderAdapter] = {}

    def use(self, handler: StreamHandler, /) -> Undo:
        """Put a handler in front of the adapters; return what takes it away."""
        self._handlers.append(handler)
        return _once(lambda: self._handlers.remove(handler))

    def register_provider(self, provider_id: str, adapter: ProviderAdapter, /) -> Undo:
        """Offer an adapter under a name; return what takes it away.

        Raises:
            ValueError: Another adapter has that name.
        """
        if provider_id in self._providers:
            raise ValueError(f"two providers are named {provider_id!r}")
        self._providers[provider_id] = adapter
        return _once(lambda: self._providers.pop(provider_id, None))

    @property
    def providers(self) -> Mapping[str, ProviderAdapter]:
        """The registered adapters by name, in order of registration."""
        return self._providers

    @property
    def intercepted(self) -> bool:
        """Whether a handler stands in front of the adapters, so that none may be needed."""
        return bool(self._handlers)

    def model(self, provider: str, model: str) -> ModelInfo | None:
        """Return what the catalogue says of a model; None where it is not listed."""
        adapter = self._providers.get(provider)
        models = adapter.models if adapter else ()
        return next((info for info in models if info.id == model), None)

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Ask for a stream; who answers, and with which entry, is settled before this returns."""
        for handler in self._handlers:
            answer = handler(request)
            if answer is not None:
                return answer
        adapter = self._providers.get(request.provider)
        if adapter is None:
            return _failing(_no_provider(request.provider, list(self._providers)))
        try:
            return _finishing(adapter.stream(request))
        except ReplayError:
            raise
        except Exception as failure:  # noqa: BLE001  whatever an adapter raises is its provider's failure
            return _failing(failure)


def failure_of(error: BaseException) -> Failure:
    """Say in the stream's words why a provider gave up."""
    code = getattr(error, "code", None)
    text = getattr(error, "message", None)
    failure: Failure = {
        "message": text if isinstance(text, str) and text else str(error) or type(error).__name__,
        "code": code if isinstance(code, str) and code else "UNKNOWN",
    }
    status = getattr(error, "status", None)
    if isinstance(status, int):
        failure["status"] = status
    delay = getattr(error, "retry_after_ms", None)
    if isinstance(delay, int):
        failure["providerRetryAfterMs"] = delay
    request_id = getattr(error, "request_id", None)
    if isinstance(request_id, str):
        failure["requestId"] = request_id
    return failure


async def _finishing(stream: AsyncGenerator[Chunk, None]) -> AsyncGenerator[Chunk, None]:
    """Turn what an adapter raises into a last chunk; a fault of a fixture stays what it is."""
    async with aclosing(stream) as chunks:
        while True:
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except ReplayError:
                raise
            except Exception as error:  # noqa: BLE001  as in `Llm.stream`
                yield _error_finish(error)
                return
            yield chunk


async def _failing(error: BaseException) -> AsyncGenerator[Chunk, None]:
    yield _error_finish(error)


def _error_finish(error: BaseException) -> Chunk:
    failure = failure_of(error)
    kind = "aborted" if failure["code"] == "ABORTED" else "error"
    return {"type": "finish", "reason": {"kind": kind, "failure": failure}}


def _no_provider(wanted: str, known: list[str]) -> ModelError:
    offered = ", ".join(repr(name) for name in known) or "none"
    return ModelError(
        code="NO_PROVIDER", message=f"no provider is named {wanted!r}; there is {offered}"
    )


def _once(undo: Callable[[], object]) -> Undo:
    """Make an undo that does its work the first time only."""
    pending = [undo]

    def run() -> None:
        if pending:
            pending.pop()()

    return run
