"""The plugin that puts recorded models in the place of live ones."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

from llm_replay.config import ReplayConfig, parse_config
from llm_replay.replay import install_llm_replay

name = "llm-replay"
inject = ("llm",)


class PluginContext(Protocol):
    """What the plugin needs of its host: the service it injects."""

    def service(self, name: str, /) -> Any:  # noqa: ANN401  the host's own service
        """Return a service by its name; `llm` is the runtime of `install_llm_replay`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ReplayConfig):
    """The configuration of the plugin."""

    @classmethod
    def parse(cls, value: object) -> "Config":
        """Read a table of an overlay: `file`, `overrideFile`, `childFiles`, `providers`, a pace.

        Raises:
            ConfigError: With every problem, each at its key.
        """
        config = parse_config(value)
        return cls(**{field.name: getattr(config, field.name) for field in fields(config)})


def apply(context: PluginContext, config: ReplayConfig) -> Callable[[], None]:
    """Install replay in the host's runtime; what is returned takes it out again.

    Files that `config` doesn't name are those of `DSH_SNAPSHOT_FILE`, `DSH_SNAPSHOT_OVERRIDE`
    and `DSH_SNAPSHOT_CHILD_FILES`.

    Raises:
        ConfigError: The configuration says something impossible.
        ReplayError: The fixture can't be replayed.
    """
    return install_llm_replay(context.service("llm"), config).dispose
