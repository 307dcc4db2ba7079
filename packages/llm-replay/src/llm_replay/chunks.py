"""The vocabulary of a model stream: chunks, content blocks, usage. Types only, no I/O.

At run time all of these are the plain JSON objects of the log. Unknown fields,
and chunks of unknown types, pass through: what is recorded is what is served.
"""

from typing import Any, Literal, NotRequired, TypedDict


class TextBlock(TypedDict):
    """Words of the model, or of the user."""

    type: Literal["text"]
    text: str


class ReasoningBlock(TypedDict):
    """The model thinking aloud."""

    type: Literal["reasoning"]
    text: str


class ImageBlock(TypedDict):
    """A picture, kept as an attachment of the log."""

    type: Literal["image"]
    attachment: Any


class ToolCallBlock(TypedDict):
    """The model asks for a tool. `arguments` stays the raw string that was streamed."""

    type: Literal["tool-call"]
    id: str
    name: str
    arguments: str


class ToolResultBlock(TypedDict):
    """What a tool answered."""

    type: Literal["tool-result"]
    toolCallId: str
    content: list["ContentBlock"]
    isError: bool


ContentBlock = TextBlock | ReasoningBlock | ImageBlock | ToolCallBlock | ToolResultBlock


class TokenUsage(TypedDict):
    """What a call cost. Input counts and cache counts are disjoint."""

    inputTokens: int
    outputTokens: int
    cacheReadTokens: NotRequired[int]
    cacheWriteTokens: NotRequired[int]
    reasoningTokens: NotRequired[int]


class Failure(TypedDict):
    """Why a provider gave up."""

    message: str
    code: str
    status: NotRequired[int]
    providerRetryAfterMs: NotRequired[int]
    requestId: NotRequired[str]


class FinishReason(TypedDict):
    """How a call ended: `stop`, `tool-calls`, `max-tokens`, `refusal`, `aborted`, `error`.

    Open for extension, hence not a closed set; the last two carry a failure.
    """

    kind: str
    failure: NotRequired[Failure]


class BlockStart(TypedDict):
    """A block opens at `index`."""

    type: Literal["block-start"]
    index: int
    blockType: str


class TextDelta(TypedDict):
    """The next piece of a text block."""

    type: Literal["text-delta"]
    index: int
    text: str


class ReasoningDelta(TypedDict):
    """The next piece of a reasoning block."""

    type: Literal["reasoning-delta"]
    index: int
    text: str


class ToolCallDelta(TypedDict):
    """The next piece of a tool call's arguments."""

    type: Literal["tool-call-delta"]
    index: int
    id: str
    name: NotRequired[str]
    argumentsDelta: str


class BlockEnd(TypedDict):
    """The block at `index` is complete; `block` is authoritative."""

    type: Literal["block-end"]
    index: int
    block: ContentBlock


class UsageChunk(TypedDict):
    """What the call cost; comes before the finish."""

    type: Literal["usage"]
    usage: TokenUsage


class Finish(TypedDict):
    """The end of a stream; nothing comes after it."""

    type: Literal["finish"]
    reason: FinishReason
    replayState: NotRequired[Any]


Chunk = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | UsageChunk | Finish

CHUNK_TYPES = (
    "block-start",
    "text-delta",
    "reasoning-delta",
    "tool-call-delta",
    "block-end",
    "usage",
    "finish",
)
"""The closed set of chunk types, in the order of a stream."""

DELTA_FIELDS = {
    "text-delta": "text",
    "reasoning-delta": "text",
    "tool-call-delta": "argumentsDelta",
}
"""Which field of a delta carries the piece of its block's text."""

PARTIAL: tuple[Chunk, ...] = (
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "text-delta", "index": 0, "text": "partial"},
)
"""What a hang serves that has no chunks of its own."""
