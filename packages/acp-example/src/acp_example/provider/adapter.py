"""The provider's adapter: one HTTP request per model call, its answer as chunks."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from ssl import SSLContext
from typing import Final

import httpx

from acp_example.dotenv import read_value
from acp_example.exceptions import ModelError
from acp_example.findings import Finding
from acp_example.llm import ModelRequest
from acp_example.provider.config import Config
from acp_example.provider.failures import http_failure
from acp_example.provider.request import encode_body
from acp_example.provider.sse import DONE, read_payloads
from acp_example.provider.translate import Translator
from llm_replay.chunks import Chunk

_BODY_LIMIT: Final = 64 * 1024
_SECRET: Final = 8  # Shorter header values are words such as "json".


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ChatAdapter:
    """Streams chat completions from one endpoint."""

    def __init__(
        self,
        config: Config,
        *,
        environment: Mapping[str, str] = os.environ,
        directory: Path | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._config = config
        self._environment = environment
        self._directory = directory or Path.cwd()
        self._now = now
        self.name = config.name
        self.models = tuple(model.info() for model in config.models)
        self.retry_policy = config.retry.policy()

    @property
    def base_url(self) -> str:
        """Return the endpoint: the environment's where it names one, else the configured one."""
        return (self._override or self._config.base_url).rstrip("/")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of one answer.

        Raises:
            ModelError: No answer, an error instead of one, or one that is cut or garbled.
        """
        try:
            async with aclosing(self._chunks(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ModelError as error:
            raise self._without_secrets(error) from None

    async def check(self) -> list[Finding]:
        """Say whether there is a key and whether the endpoint answers; nothing is asked of it."""
        from acp_example.provider.check import look_at  # noqa: PLC0415  for the doctor alone

        try:
            headers = self._headers()
        except ModelError as error:
            hint = "an endpoint that needs no key has an empty key_env"
            return [Finding("key", error.message, hint)]
        named = self._config.key_env
        place = "the environment" if named in self._environment else self._config.env_file
        key = Finding("key", f"{named} from {place}" if self._key else "none, and none is needed")
        models = [model.id for model in self.models]
        found = await look_at(self.base_url, headers, models=models, tls=self._tls)
        return [key, *(self._shown(finding) for finding in found)]

    async def _chunks(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        translator = Translator()
        async with (
            self._respond(request) as response,
            aclosing(read_payloads(response)) as payloads,
        ):
            async for payload in payloads:
                if payload == DONE:
                    break
                for chunk in translator.feed(payload):
                    yield chunk
        for chunk in translator.finish():
            yield chunk

    @property
    def _override(self) -> str | None:
        name = self._config.base_url_env
        return self._environment.get(name) or None if name else None

    @cached_property
    def _tls(self) -> SSLContext:
        # Reading the certificates takes longer than a request to a neighbour.
        return httpx.create_ssl_context()

    @asynccontextmanager
    async def _respond(self, request: ModelRequest) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the answer's start, with httpx's errors in our words."""
        timeout = httpx.Timeout(self._config.idle_timeout_s, connect=self._config.connect_timeout_s)
        url = f"{self.base_url}/chat/completions"
        try:
            # A client per call: nothing to close at exit, and no connection that went stale.
            async with (
                httpx.AsyncClient(verify=self._tls, timeout=timeout) as client,
                client.stream(
                    "POST",
                    url,
                    content=encode_body(request, self._config),
                    headers=self._headers(),
                ) as response,
            ):
                if not response.is_success:
                    raise await self._refusal(response)
                yield response
        except httpx.HTTPError as error:
            raise self._broken(error, url) from None
        except httpx.InvalidURL as error:
            raise ModelError(code="INVALID_REQUEST", message=f"{url!r}: {error}") from None

    def _broken(self, error: httpx.HTTPError, url: str) -> ModelError:
        """Say what became of a connection that gave no whole answer."""
        match error:
            case httpx.ConnectTimeout():
                limit = self._config.connect_timeout_s
                code, what = "TIMEOUT", f"{url} accepted no connection for {limit:g} s"
            case httpx.TimeoutException():
                limit = self._config.idle_timeout_s
                code, what = "TIMEOUT", f"{url} sent nothing for {limit:g} s"
            case httpx.UnsupportedProtocol():
                code, what = "INVALID_REQUEST", f"{url!r} is no http or https URL"
            case httpx.ConnectError():
                code, what = "TRANSPORT", f"no connection to {url}: {error}"
            case _:
                why = str(error) or "the connection was reset"
                code, what = "TRANSPORT", f"the answer from {url} broke off: {why}"
        return ModelError(code=code, message=what)

    async def _refusal(self, response: httpx.Response) -> ModelError:
        body = b""
        async for part in response.aiter_bytes():
            body += part
            if len(body) >= _BODY_LIMIT:
                break
        return http_failure(
            provider=self.name,
            status=response.status_code,
            headers=response.headers,
            body=body[:_BODY_LIMIT].decode("utf-8", "replace"),
            now=self._now(),
        )

    def _headers(self) -> dict[str, str]:
        headers = {
            "accept": "text/event-stream",
            "cache-control": "no-store",
            "content-type": "application/json",
            **{name.lower(): value for name, value in self._config.headers.items()},
        }
        if "authorization" not in headers and (authorization := self._authorization()):
            headers["authorization"] = authorization
        return headers

    def _authorization(self) -> str | None:
        name, key = self._config.key_env, self._key
        if not name or (not key and self._override is not None):
            return None
        if not key:
            raise ModelError(
                code="AUTH",
                message=f"there is no key for {self.name}: set {name}, or configure key_env",
            )
        if not (key.isascii() and key.isprintable()):
            raise ModelError(
                code="AUTH", message=f"{name} holds a character that no HTTP header can carry"
            )
        return f"Bearer {key}"

    @cached_property
    def _key(self) -> str:
        """The key, or nothing.

        Only the key may come from a file: an endpoint from a file that came with somebody's
        project would be sent the key out of the environment.
        """
        name, file = self._config.key_env, self._config.env_file
        if not name:
            return ""
        key = self._environment.get(name)
        if key is None and file and "DSH_SNAPSHOT" not in self._environment:
            key = read_value(self._directory / file, name)
        return (key or "").strip()

    @property
    def _secrets(self) -> list[str]:
        """What may be nobody else's: the key, configured headers, the user part of the URL."""
        host = self.base_url.partition("//")[2].partition("/")[0]
        user = host.rpartition("@")[0]
        headers = [value for value in self._config.headers.values() if len(value) >= _SECRET]
        found = [self._key, *headers, user, user.partition(":")[2]]
        return sorted(filter(None, found), key=len, reverse=True)

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return text

    def _shown(self, finding: Finding) -> Finding:
        hint = finding.hint and self._hide(finding.hint)
        return Finding(finding.about, self._hide(finding.state), hint)

    def _without_secrets(self, error: ModelError) -> ModelError:
        """Take what is secret out of a failure, which will be logged: some servers echo it."""
        return ModelError(
            code=error.code,
            message=self._hide(error.message),
            status=error.status,
            retry_after_ms=error.retry_after_ms,
            request_id=error.request_id,
        )
