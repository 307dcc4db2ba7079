"""Looking at an endpoint without asking a model anything."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, Final

import httpx

from acp_example.findings import Finding

_PATIENCE_S: Final = 10


async def look_at(
    base_url: str, headers: Mapping[str, str], *, models: list[str], tls: SSLContext
) -> list[Finding]:
    """Ask an endpoint for its models, and say what the answer tells. The key is never shown."""
    url = f"{base_url}/models"
    try:
        async with httpx.AsyncClient(verify=tls, timeout=_PATIENCE_S) as client:
            response = await client.get(url, headers=dict(headers))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error) or type(error).__name__
        hint = "is the server running, and the base URL right?"
        return [Finding("endpoint", f"{base_url} does not answer: {why}", hint)]
    if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        state = f"{base_url} refuses the key ({response.status_code})"
        return [Finding("endpoint", state, "look at the variable that key_env names")]
    reachable = Finding("endpoint", f"{base_url} answers ({response.status_code})")
    return [reachable, *_missing(response, models)]


def _missing(response: httpx.Response, models: list[str]) -> Iterator[Finding]:
    """Compare the catalogue with the endpoint's own list, where it gives one."""
    offered = _offered(response)
    for model in models:
        if offered and model not in offered:
            shown = ", ".join(sorted(offered)[:20])
            yield Finding("endpoint", f"it does not offer {model!r}", f"it offers {shown}")


def _offered(response: httpx.Response) -> set[str]:
    try:
        listed: Any = response.json()["data"]
        return {str(model["id"]) for model in listed}
    except (ValueError, KeyError, TypeError):
        return set()
