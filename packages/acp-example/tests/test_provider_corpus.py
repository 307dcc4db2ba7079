"""Streams with known answers: what the reference's adapter makes of them, and ours."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_example.exceptions import ModelError
from acp_example.provider.sse import DONE, read_payloads
from acp_example.provider.translate import Translator

CASES = Path(os.environ["REPLAY_CORPUS"]) / "cases"


def cases(name: str) -> list[Any]:
    document = json.loads((CASES / name).read_text("utf-8"))
    return [pytest.param(case, id=case["name"]) for case in document["cases"]]


class Parts(httpx.AsyncByteStream):
    """A response body that arrives in these parts."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


async def payloads_of(parts: list[bytes]) -> tuple[list[str], str | None]:
    response = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, stream=Parts(parts)
    )
    items: list[str] = []
    try:
        async for payload in read_payloads(response):
            items.append(payload)  # noqa: PERF401  what came before an error counts
    except ModelError as error:
        return items, error.code
    return items, None


@pytest.mark.parametrize("case", cases("deepseek-sse.json"))
def test_events_are_read_as_the_reference_reads_them(case: dict[str, Any]) -> None:
    parts = [base64.b64decode(part) for part in case["partsBase64"]]

    items, code = asyncio.run(payloads_of(parts))

    assert items == case["items"]
    assert code == (case["error"] and case["error"]["code"])


# An id that the wire never gave: the reference leaves it empty, and leaves it to its loop.
OURS = {
    "tool call without id or name": {
        "type": "block-end",
        "index": 0,
        "block": {"type": "tool-call", "id": "call-0", "name": "", "arguments": ""},
    }
}


def without_wording(chunks: list[Any]) -> list[Any]:
    """Return chunks whose failures say what went wrong only by code."""
    return [
        {**chunk, "reason": {"kind": "error", "code": chunk["reason"]["failure"]["code"]}}
        if chunk["type"] == "finish" and "failure" in chunk["reason"]
        else chunk
        for chunk in chunks
    ]


@pytest.mark.parametrize("case", cases("deepseek-translate.json"))
def test_payloads_become_the_chunks_of_the_reference(case: dict[str, Any]) -> None:
    translator = Translator()
    chunks: list[Any] = []
    code = None
    try:
        for payload in case["payloads"]:
            chunks += translator.finish() if payload == DONE else translator.feed(payload)
    except ModelError as error:
        code = error.code

    expected = [
        OURS.get(case["name"], item) if item["type"] == "block-end" else item
        for item in case["translate"]["items"]
    ]
    assert without_wording(chunks) == without_wording(expected)
    failure = case["translate"]["error"]
    assert code == (failure and failure["code"])
