"""What a client sends as a prompt, turned into the content of a message. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_example.exceptions import AcpExampleError


class PromptError(AcpExampleError):
    """A prompt holds something this agent can't take."""


def message_content(blocks: Sequence[Mapping[str, Any]], *, images: bool) -> list[dict[str, Any]]:
    """Return the content blocks of a user's message.

    Raises:
        PromptError: A block is of a kind that was not offered, or nothing was said.
    """
    content = [_block(block, images=images) for block in blocks]
    if not any(block["type"] == "image" or block["text"].strip() for block in content):
        raise PromptError("empty prompt: it has no text and no image")
    return content


def _block(block: Mapping[str, Any], *, images: bool) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return _text(block["text"])
        case "image" if images:
            attachment = {"mimeType": block["mimeType"], "data": block["data"]}
            return {"type": "image", "attachment": attachment}
        case "image":
            raise PromptError("this model takes no images; choose another one, or describe it")
        case "resource_link":
            return _text(f"[{block['name']}]({block['uri']})")
        case "resource" if "text" in block["resource"]:
            resource = block["resource"]
            text = resource["text"].removesuffix("\n")
            return _text(f'<resource uri="{resource["uri"]}">\n{text}\n</resource>')
        case "resource":
            raise PromptError(
                f"the embedded resource {block['resource']['uri']!r} is not text; send a link to it"
            )
        case kind:
            raise PromptError(f"a prompt may not hold {kind!r} blocks")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
