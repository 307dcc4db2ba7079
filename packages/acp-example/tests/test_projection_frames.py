"""The updates that the loop makes of its events are the protocol's, by the SDK's own models."""

from acp_wire import REQUESTS
from loop_bench import Make
from loop_everything import everything


def test_every_update_and_question_of_a_session_is_one_of_the_protocols(bench: Make) -> None:
    agent = everything(bench)
    live = list(agent.client.updates)
    agent.reload()

    for update in [*live, *agent.client.updates]:
        params = {"sessionId": "s", "update": update}
        REQUESTS["session/update"].model_validate(params, extra="forbid")
    for question in agent.client.asked:
        params = {"sessionId": "s", **question}
        REQUESTS["session/request_permission"].model_validate(params, extra="forbid")
    assert len(agent.client.asked) == 1
