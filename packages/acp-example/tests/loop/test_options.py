import pytest
from loop_bench import Bench, FakeTool, Make, window

from acp_example.options import OptionError, config_options, mode_state, set_mode, set_option
from llm_replay.scripted_model import call, say, scripted
from llm_replay.seam import ModelInfo


def with_models(agent: Bench) -> Bench:
    """Give the agent a second provider, with a model that thinks."""
    other = scripted()
    other.models = (
        ModelInfo(
            id="thinker", reasoning_efforts=("off", "high"), input_modalities=("text", "image")
        ),
    )
    agent.llm.register_provider("other", other)
    return agent


def test_modes_are_the_three_permission_modes(bench: Make) -> None:
    state = mode_state(bench(permission_mode="workspace-write").session)

    assert state["currentModeId"] == "workspace-write"
    assert [mode["id"] for mode in state["availableModes"]] == [
        "read-only",
        "workspace-write",
        "full-access",
    ]


def test_mode_holds_from_the_next_turn_on_and_is_logged(bench: Make) -> None:
    agent = bench(
        call("c", "edit"),
        say("ok"),
        say("still"),
        tools=[FakeTool("edit", path_policy="write", kind="edit")],
    )
    agent.prompt()

    set_mode(agent.session, "read-only")
    set_mode(agent.session, "read-only")
    agent.prompt()

    assert agent.model.requests[2].tools == []
    assert [event for event in agent.events if event["type"] == "permission/mode"] == [
        {
            "type": "permission/mode",
            "seq": next(e["seq"] for e in agent.events if e["type"] == "permission/mode"),
            "time": 0,
            "data": {"mode": "read-only"},
            "ignorable": True,
        }
    ]


def test_mode_that_there_is_not_is_refused(bench: Make) -> None:
    with pytest.raises(OptionError) as caught:
        set_mode(bench().session, "yolo")

    assert str(caught.value) == (
        "no mode is named 'yolo'; there is 'read-only', 'workspace-write', 'full-access'"
    )


def test_catalogue_is_an_option_that_can_be_read(bench: Make) -> None:
    agent = with_models(bench())

    (option,) = config_options(agent.session)

    assert option["id"] == option["category"] == "model"
    assert option["currentValue"] == "scripted/scripted"
    assert option["options"] == [
        {"value": "scripted/scripted", "name": "scripted (Scripted)"},
        {"value": "other/thinker", "name": "thinker (Scripted)"},
    ]


def test_model_outside_the_catalogue_is_shown_too(bench: Make) -> None:
    agent = bench(model=scripted())
    agent.session.model = "unlisted"

    (option,) = config_options(agent.session)

    assert option["options"][0] == {"value": "scripted/unlisted", "name": "unlisted"}


def test_option_can_be_set_and_holds_from_the_next_turn_on(bench: Make) -> None:
    agent = with_models(bench(say("one")))
    agent.prompt()

    set_option(agent.session, "model", "other/thinker")

    assert agent.session.takes_images
    settings = agent.session.settings()
    assert (settings.provider, settings.model) == ("other", "thinker")
    effort = config_options(agent.session)[1]
    assert [choice["value"] for choice in effort["options"]] == ["default", "off", "high"]
    set_option(agent.session, "effort", "high")
    assert agent.session.settings().header()["config"]["reasoningEffort"] == "high"
    set_option(agent.session, "effort", "default")
    assert agent.session.settings().reasoning_effort is None
    assert len(agent.of("session/model")) == 3


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("modle", "x", "no option is named 'modle'; there is 'model'"),
        ("model", "x", "'model' can't be 'x'; it can be 'scripted/scripted'"),
        ("model", True, "'model' can't be True; it can be 'scripted/scripted'"),
    ],
)
def test_option_that_there_is_not_is_refused(
    bench: Make, option: str, value: object, text: str
) -> None:
    with pytest.raises(OptionError) as caught:
        set_option(bench().session, option, value)

    assert str(caught.value) == text


def test_images_are_taken_where_some_model_takes_them(bench: Make) -> None:
    agent = bench()

    assert not agent.sessions.any_images
    assert not agent.session.takes_images
    with_models(agent)
    assert agent.sessions.any_images


def test_model_that_no_catalogue_lists_has_no_known_window(bench: Make) -> None:
    agent = bench()
    window(agent.model, 5)
    assert agent.session.settings().context_window == 5

    agent.session.model = "unlisted"

    assert agent.session.settings().context_window is None
    agent.session.provider = "unknown"
    assert agent.session.settings().context_window is None
