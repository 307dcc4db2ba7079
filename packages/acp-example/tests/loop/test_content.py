import pytest
from loop_bench import Json

from acp_example.content import PromptError, message_content


def resource(**content: str) -> Json:
    return {"type": "resource", "resource": {"uri": "file:///a.txt", **content}}


IMAGE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}


def test_prompt_of_every_kind_becomes_text_and_images() -> None:
    content = message_content(
        [
            {"type": "text", "text": "look"},
            {"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"},
            resource(text="inside"),
            IMAGE,
        ],
        images=True,
    )

    assert content == [
        {"type": "text", "text": "look"},
        {"type": "text", "text": "[a.txt](file:///a.txt)"},
        {"type": "text", "text": '<resource uri="file:///a.txt">\ninside\n</resource>'},
        {"type": "image", "attachment": {"mimeType": "image/png", "data": "AAAA"}},
    ]


def test_embedded_text_that_ends_its_last_line_gets_no_blank_one() -> None:
    content = message_content([resource(text="one\n\n")], images=False)

    assert content[0]["text"] == '<resource uri="file:///a.txt">\none\n\n</resource>'


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        ([], "empty prompt: it has no text and no image"),
        ([{"type": "text", "text": " \n"}], "empty prompt: it has no text and no image"),
        ([IMAGE], "this model takes no images; choose another one, or describe it"),
        (
            [resource(blob="AAAA")],
            "the embedded resource 'file:///a.txt' is not text; send a link to it",
        ),
        (
            [{"type": "audio", "data": "", "mimeType": "a/b"}],
            "a prompt may not hold 'audio' blocks",
        ),
    ],
)
def test_prompt_that_cannot_be_taken_says_why(blocks: list[Json], text: str) -> None:
    with pytest.raises(PromptError) as caught:
        message_content(blocks, images=False)

    assert str(caught.value) == text


def test_image_alone_is_a_prompt() -> None:
    assert len(message_content([IMAGE], images=True)) == 1
