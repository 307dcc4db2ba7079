"""The keys of the provider plugin: an endpoint, its key and its models."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from llm_replay.seam import RETRY_CODES, ModelInfo, RetryPolicy


class Model(BaseModel):
    """A model that the endpoint offers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str | None = None
    """What a person sees; the id where there is none."""
    context_window: int | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, gt=0)
    input_modalities: tuple[Literal["text", "image"], ...] = ("text",)
    reasoning_efforts: tuple[str, ...] = ()

    def info(self) -> ModelInfo:
        """Return the entry of the catalogue."""
        return ModelInfo(
            id=self.id,
            name=self.name or self.id,
            context_window=self.context_window,
            input_modalities=self.input_modalities,
            max_output_tokens=self.max_output_tokens,
            reasoning_efforts=self.reasoning_efforts,
        )


class Retry(BaseModel):
    """How failures of the endpoint are retried."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["normal", "always"] = "normal"
    """`always` knows no last attempt."""
    max_retries: int = Field(default=5, ge=0)
    codes: tuple[str, ...] = RETRY_CODES
    initial_delay_ms: int = Field(default=500, ge=0)
    max_delay_ms: int = Field(default=10_000, ge=0)
    multiplier: float = Field(default=2.0, ge=1)
    jitter_ratio: float = Field(default=0.1, ge=0, le=1)

    def policy(self) -> RetryPolicy:
        """Return the policy as the model seam states it."""
        return RetryPolicy(**self.model_dump())


class Config(BaseModel):
    """An endpoint that speaks chat completions; by default DeepSeek's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = "deepseek"
    name: str = "DeepSeek"
    base_url: str = "https://api.deepseek.com"
    base_url_env: str | None = None
    """A variable that, when set, replaces `base_url`; such an endpoint may go without a key."""
    key_env: str | None = "DEEPSEEK_API_KEY"
    """The variable that holds the key; an endpoint that needs none has an empty one."""
    env_file: str | None = ".env"
    """Where else the key may stand, seen from the composition; never read in a snapshot run."""
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request body, for example a temperature."""
    models: tuple[Model, ...] = (
        Model(id="deepseek-chat", context_window=128_000),
        Model(id="deepseek-reasoner", context_window=128_000),
    )
    idle_timeout_s: float = Field(default=300, gt=0)
    """How long the endpoint may stay silent, before and within its answer."""
    connect_timeout_s: float = Field(default=30, gt=0)
    tool_choice: str | None = None
    """`auto`, `none`, `required` or a tool's name; the last two hold for a turn's first step."""
    send_reasoning: bool = True
    """Whether earlier thoughts go back to the model, as `reasoning_content`."""
    effort_style: Literal["thinking", "reasoning_effort"] = "thinking"
    """How an effort is spelled: DeepSeek's `thinking` object, or OpenAI's key alone."""

    retry: Retry = Retry()

    @field_validator("headers")
    @classmethod
    def _headers_can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not all(part.isascii() and part.isprintable() for part in (name, value)):
                raise ValueError(f"{name!r} holds a character that no HTTP header can carry")
        return headers

    def model_named(self, model_id: str) -> Model:
        """Return a model of the catalogue, or one that we know nothing about."""
        found = (model for model in self.models if model.id == model_id)
        return next(found, Model(id=model_id))
