"""What a client may read and set of a session: its mode, its model, how hard it thinks."""

from typing import Any, cast

from acp_example.exceptions import AcpExampleError
from acp_example.live import Session
from acp_example.permissions import MODES, Mode


class OptionError(AcpExampleError):
    """A mode, an option or a value that there is not."""


def mode_state(session: Session) -> dict[str, Any]:
    """Return the modes of a session, and which it is in."""
    available = [
        {"id": mode, "name": name, "description": description}
        for mode, (name, description) in MODES.items()
    ]
    return {"currentModeId": session.mode, "availableModes": available}


def set_mode(session: Session, mode: str) -> None:
    """Change the mode; what runs already was decided under the old one.

    Raises:
        OptionError: There is no such mode.
    """
    if mode not in MODES:
        raise OptionError(f"no mode is named {mode!r}; there is {_listed(list(MODES))}")
    if mode != session.mode:
        session.mode = cast("Mode", mode)
        session.record("permission/mode", {"mode": mode}, ignorable=True)


def config_options(session: Session) -> list[dict[str, Any]]:
    """Return the options of a session with their values: each model of each provider."""
    models = [
        {"value": f"{provider}/{model.id}", "name": f"{model.name} ({adapter.name})"}
        for provider, adapter in session.host.composition.llm.providers.items()
        for model in adapter.models
    ]
    current = f"{session.provider}/{session.model}"
    if current not in [model["value"] for model in models]:
        models.insert(0, {"value": current, "name": session.model})
    options = [_select("model", "Model", "model", current, models)]
    efforts = session.info.reasoning_efforts if session.info else ()
    if efforts:
        values = [{"value": "default", "name": "Default"}]
        values += [{"value": effort, "name": effort.capitalize()} for effort in efforts]
        chosen = session.reasoning_effort or "default"
        options.append(_select("effort", "Reasoning effort", "thought_level", chosen, values))
    return options


def set_option(session: Session, option: str, value: object) -> None:
    """Change an option.

    Raises:
        OptionError: There is no such option, or it can't have that value.
    """
    known = {entry["id"]: entry for entry in config_options(session)}
    if option not in known:
        raise OptionError(f"no option is named {option!r}; there is {_listed(list(known))}")
    values = [choice["value"] for choice in known[option]["options"]]
    if value not in values:
        raise OptionError(f"{option!r} can't be {value!r}; it can be {_listed(values)}")
    text = str(value)
    if option == "effort":
        session.reasoning_effort = None if text == "default" else text
    else:
        session.provider, _, session.model = text.partition("/")
        session.reasoning_effort = None
    chosen = {
        "provider": session.provider,
        "model": session.model,
        "reasoningEffort": session.reasoning_effort,
    }
    session.record("session/model", chosen, ignorable=True)


def _select(
    option: str, name: str, category: str, value: str, choices: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": option,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": choices,
    }


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)
