"""Finding plugins, checking their shape, and applying them to the services they need."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final, Protocol, cast

GROUP: Final = "acp_example.plugins"
_SHAPE: Final = ("name", "inject", "Config", "apply")

Dispose = Callable[[], None]


class Plugin(Protocol):
    """The one shape of a plugin; mostly a module."""

    name: str
    inject: Sequence[str]
    Config: Any
    """A pydantic model, or a class with `parse(mapping)`."""

    def apply(self, context: "Context", config: Any, /) -> Dispose | None:  # noqa: ANN401  the plugin's own Config
        """Do the plugin's work; what is returned undoes it."""
        ...


class Context:
    """The services of a composition, by name."""

    def __init__(self, **services: object) -> None:
        self._services: dict[str, Any] = dict(services)

    def __contains__(self, name: str) -> bool:
        return name in self._services

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  services are told apart by name
        return self.service(name)

    def service(self, name: str) -> Any:  # noqa: ANN401  services are told apart by name
        """Return a service.

        Raises:
            KeyError: There is none of that name; a plugin that injects it is sure to find it.
        """
        return self._services[name]

    def provide(self, name: str, value: object) -> None:
        """Offer a service under a name, in place of an earlier one."""
        self._services[name] = value

    @property
    def names(self) -> list[str]:
        """The names of all services."""
        return sorted(self._services)


def find(target: str) -> Plugin:
    """Load a plugin by the name of its entry point, or of its module.

    Raises:
        LookupError: There is neither, or what is there lacks the shape of a plugin.
    """
    plugin = _entry_point(target) if "." not in target else None
    if plugin is None:
        plugin = _module(target)
    missing = [part for part in _SHAPE if not hasattr(plugin, part)]
    if missing:
        raise LookupError(f"{target!r} is no plugin: it lacks {', '.join(missing)}")
    return cast("Plugin", plugin)


def parse_config(plugin: Plugin, config: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Read a plugin's configuration; return it, or what is wrong with it."""
    parse = getattr(plugin.Config, "parse", None) or plugin.Config.model_validate
    try:
        return parse(config), []
    except Exception as error:  # noqa: BLE001  a plugin's own errors; all become problems
        return None, problems_of(error)


def problems_of(error: Exception) -> list[str]:
    """Return what an error says, one line per problem."""
    details = getattr(error, "errors", None)
    if callable(details):
        return [_detail(detail) for detail in details()]
    problems = getattr(error, "problems", None)
    if problems:
        return [str(problem) for problem in problems]
    return [str(error) or type(error).__name__]


def _detail(detail: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in detail["loc"])
    return f"{place}: {detail['msg']}" if place else str(detail["msg"])


def _entry_point(target: str) -> object | None:
    for point in entry_points(group=GROUP, name=target):
        return cast("object", point.load())
    return None


def _module(target: str) -> object:
    try:
        if target and not target.startswith("."):
            return importlib.import_module(target)
    except ModuleNotFoundError as error:
        # A module that is there and lacks one of its own imports says so itself.
        if error.name is None or not f"{target}.".startswith(f"{error.name}."):
            raise LookupError(f"{target!r} can't be imported: {error}") from error
    known = sorted(point.name for point in entry_points(group=GROUP))
    offered = ", ".join(repr(name) for name in known) or "none"
    raise LookupError(f"no plugin and no module is named {target!r} (plugins: {offered})")
