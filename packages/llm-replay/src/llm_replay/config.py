"""What replay is told: files, pace, and the catalogue of the providers it stands in for. No I/O."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from llm_replay.config_fields import Fields, read_document
from llm_replay.seam import RETRY_CODES, ModelInfo, RetryPolicy

PathText: TypeAlias = str | os.PathLike[str]

ReplayModelConfig = ModelInfo
"""A model of a replayed provider: what the configuration says is what the catalogue offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayProviderConfig:
    """A provider that replay stands in for."""

    id: str
    name: str = ""
    models: Sequence[ReplayModelConfig] = ()
    retry_policy: RetryPolicy | None = None

    def __post_init__(self) -> None:
        """Name a nameless provider by its id."""
        if not self.name:
            object.__setattr__(self, "name", self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """What replay serves, and how.

    Without `providers` replay answers every request, in front of all adapters. `pace_ms` waits
    before each chunk; `pace="recorded"` waits as long as the recording did.
    """

    file: PathText | None = None
    override_file: PathText | None = None
    child_files: Sequence[PathText] = ()
    providers: Sequence[ReplayProviderConfig] = ()
    pace_ms: int | None = None
    pace: Literal["recorded"] | None = None


def parse_config(value: object) -> ReplayConfig:
    """Read the plugin's configuration, keys spelled as in an overlay.

    Raises:
        ConfigError: With every problem, each at its key.
    """
    return read_document("llm-replay config", value, _read_config)


def check_config(config: ReplayConfig) -> ReplayConfig:
    """Return `config` as `parse_config` would have read it from an overlay.

    Raises:
        ConfigError: With every problem, each at its key.
    """
    return parse_config(_as_document(config))


def with_environment(config: ReplayConfig, environ: Mapping[str, str]) -> ReplayConfig:
    """Fill in the files that `config` doesn't name from the `DSH_SNAPSHOT_*` variables."""
    children = environ.get("DSH_SNAPSHOT_CHILD_FILES", "").split(os.pathsep)
    return replace(
        config,
        file=config.file or environ.get("DSH_SNAPSHOT_FILE") or None,
        override_file=config.override_file or environ.get("DSH_SNAPSHOT_OVERRIDE") or None,
        child_files=config.child_files or tuple(child for child in children if child),
    )


def _read_config(fields: Fields) -> ReplayConfig:
    config = ReplayConfig(
        file=fields.path("file"),
        override_file=fields.path("overrideFile"),
        child_files=fields.paths("childFiles"),
        providers=fields.objects("providers", _read_provider),
        pace_ms=fields.integer("paceMs", at_least=0),
        pace=fields.choice("pace", ("recorded",)),
    )
    fields.unique("providers", [provider.id for provider in config.providers])
    if config.pace_ms is not None and config.pace is not None:
        fields.problem("pace", "stands beside paceMs; keep one of them")
    fields.finish()
    return config


def _read_provider(fields: Fields) -> ReplayProviderConfig:
    provider = ReplayProviderConfig(
        id=fields.required_text("id"),
        name=fields.text("name") or "",
        models=fields.objects("models", _read_model),
        retry_policy=fields.object("retryPolicy", _read_retry_policy),
    )
    fields.unique("models", [model.id for model in provider.models])
    fields.finish()
    return provider


def _read_model(fields: Fields) -> ReplayModelConfig:
    model = ReplayModelConfig(
        id=fields.required_text("id"),
        name=fields.text("name") or "",
        context_window=fields.integer("contextWindow", at_least=1),
        input_modalities=fields.choices("inputModalities", ("text", "image"), default=("text",)),
        max_output_tokens=fields.integer("maxOutputTokens", at_least=1),
        reasoning_efforts=fields.texts("reasoningEfforts"),
    )
    fields.finish()
    return model


def _read_retry_policy(fields: Fields) -> RetryPolicy:
    policy = RetryPolicy(
        mode=fields.choice("mode", ("normal", "always")) or "normal",
        max_retries=fields.integer("maxRetries", at_least=0, default=5),
        codes=fields.texts("codes", default=RETRY_CODES),
        instant=fields.flag("instant"),
    )
    backoff = fields.object("backoff", lambda inner: _read_backoff(inner, policy))
    fields.finish()
    return backoff or policy


def _read_backoff(fields: Fields, policy: RetryPolicy) -> RetryPolicy:
    policy = replace(
        policy,
        initial_delay_ms=fields.integer("initialDelayMs", at_least=0, default=500),
        max_delay_ms=fields.integer("maxDelayMs", at_least=0, default=10_000),
        multiplier=fields.number("multiplier", at_least=1, default=2.0),
        jitter_ratio=fields.number("jitterRatio", at_least=0, at_most=1, default=0.1),
    )
    fields.finish()
    return policy


def _as_document(config: ReplayConfig) -> dict[str, Any]:
    return _present(
        file=_path_text(config.file),
        overrideFile=_path_text(config.override_file),
        childFiles=_each(config.child_files, _path_text),
        providers=_each(config.providers, _provider_document),
        paceMs=config.pace_ms,
        pace=config.pace,
    )


# What follows takes anything, since nothing was checked yet: what isn't of its type passes
# through, for reading to refuse.


def _provider_document(provider: object) -> object:
    if not isinstance(provider, ReplayProviderConfig):
        return provider
    return _present(
        id=provider.id,
        name=provider.name or None,
        models=_each(provider.models, _model_document),
        retryPolicy=_policy_document(provider.retry_policy),
    )


def _model_document(model: object) -> object:
    if not isinstance(model, ReplayModelConfig):
        return model
    return _present(
        id=model.id,
        name=model.name or None,
        contextWindow=model.context_window,
        inputModalities=_each(model.input_modalities),
        maxOutputTokens=model.max_output_tokens,
        reasoningEfforts=_each(model.reasoning_efforts),
    )


def _policy_document(policy: object) -> object:
    if not isinstance(policy, RetryPolicy):
        return policy
    return {
        "mode": policy.mode,
        "maxRetries": policy.max_retries,
        "codes": _each(policy.codes),
        "instant": policy.instant,
        "backoff": {
            "initialDelayMs": policy.initial_delay_ms,
            "maxDelayMs": policy.max_delay_ms,
            "multiplier": policy.multiplier,
            "jitterRatio": policy.jitter_ratio,
        },
    }


def _path_text(path: object) -> object:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _each(values: object, convert: Callable[[object], object] = lambda value: value) -> object:
    """Return a list of the values, each converted; a text is one value and no list of letters."""
    return [convert(value) for value in values] if isinstance(values, list | tuple) else values


def _present(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  a JSON value of any kind
    return {key: value for key, value in fields.items() if value is not None}
