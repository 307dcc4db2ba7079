"""Replay recorded model streams from session logs, in place of a live model.

- A runtime of your own: `install_llm_replay(runtime, ReplayConfig(file=…))`; what it must offer
  is in `llm_replay.seam`.
- A plugin of an agent: `llm_replay.plugin`.
- Tests inside one process: `scripted(say("Hello"))`, or the fixture `scripted_model`.
- Logs and scripts: `load_session_scripts`, `parse_session_log`; on the command line `llm-replay`.

Each name is imported when it is first used, so that a program pays for what it needs; the stub
beside this file tells type checkers where they are.
"""

from importlib import import_module

_HOMES = {
    "chunks": ("Chunk",),
    "config": ("ReplayConfig", "ReplayModelConfig", "ReplayProviderConfig"),
    "calls": ("DerivedCall", "ReplayEntry"),
    "derive": ("derive_calls", "derive_replay_script"),
    "exceptions": (
        "ConfigError",
        "OverrideError",
        "PatternTimeoutError",
        "PlaceholderError",
        "RecordedFailureError",
        "ReplayError",
        "ReplayExhaustedError",
        "ReplayFault",
        "RequestError",
        "ScriptError",
        "SessionLogError",
        "TwoStreamsError",
        "UnclaimedScriptError",
        "UnfinishedCallError",
        "UnknownSessionError",
        "UnresolvedRootError",
        "VerdictError",
    ),
    "override": ("ReplayOverrideDoc", "ReplayOverridePatch", "parse_override"),
    "packing": ("pack_events", "project_row"),
    "placeholders": ("resolve_scripted_entry",),
    "replay": ("ReplayHandle", "install_llm_replay"),
    "requests": ("RecordedRequest",),
    "rounds": ("Block", "call", "error", "fail", "hang", "raw", "round_", "say", "think"),
    "script": ("SessionScript", "load_replay_script", "load_session_scripts"),
    "scripted_model": ("ScriptedModel", "scripted"),
    "seam": ("ModelInfo", "ProviderAdapter", "RetryPolicy", "Runtime", "StreamHandler"),
    "session_log": (
        "SessionEvent",
        "SessionHeader",
        "SessionLog",
        "dump_session_log",
        "lineage_key",
        "parse_session_header",
        "parse_session_log",
        "read_session_log",
        "sort_logs",
    ),
    "tokens": ("Roots",),
    "verdict": ("VERDICT_SCHEMA", "VerdictFile", "VerdictWriter", "read_verdict"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  a list of strings, written once


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
