from loop_bench import FakeTool, Json, Make, window

from acp_example.tools import ToolResult
from llm_replay.scripted_model import call, round_, say, think


def test_session_load_tells_what_happened(bench: Make) -> None:
    agent = bench(
        round_(think("hm"), say("I look"), call("c", "look", {"at": 1})),
        say("It is fine."),
        tools=[FakeTool("look", "seen", kind="read", locations=lambda given: [str(given["at"])])],
    )
    agent.prompt("please look")
    live = [u for u in agent.client.updates if u["sessionUpdate"].startswith("tool_call")]

    agent.reload()

    kinds = agent.client.kinds()
    assert kinds == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "1.1.1 pending",
        "1.1.1 completed",
        "agent_message_chunk",
    ]
    told = [u for u in agent.client.updates if u["sessionUpdate"].startswith("tool_call")]
    assert told == [live[0], live[2]]
    assert agent.client.text("user_message_chunk") == ["please look"]


def test_session_load_tells_the_user_words_once_after_a_compaction(bench: Make) -> None:
    agent = bench(
        say("hello"),
        round_(call("c", "look"), usage={"inputTokens": 9000, "outputTokens": 0}),
        say("the summary"),
        say("done"),
        tools=[FakeTool("look")],
    )
    window(agent.model, 10_000)
    agent.prompt("first")
    agent.prompt("second")

    agent.reload()

    assert agent.client.text("user_message_chunk") == ["first", "second"]


def test_session_load_tells_images_and_unknown_tools(bench: Make) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    tool = FakeTool("look", ToolResult(text="a picture", images=[image]))
    agent = bench(call("c", "look", "{"), call("d", "look"), say("ok"), tools=[tool])
    content: list[Json] = [
        {"type": "text", "text": "see"},
        {"type": "image", "attachment": {"mimeType": "image/png", "data": "BBBB"}},
    ]
    agent.run(agent.session.prompt(content))

    agent.host.composition.tools._tools.clear()  # noqa: SLF001  the tool is gone when it is loaded
    agent.reload()

    assert agent.client.updates[1]["content"] == {**image, "data": "BBBB"}
    first = agent.client.updates[2]
    assert (first["title"], first["kind"], first["rawInput"]) == ("look", "other", "{")
    assert agent.client.updates[5]["content"][1]["content"] == image
