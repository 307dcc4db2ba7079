from snapshot_harness.json_value import Json
from snapshot_harness.references import mapped, references, without_references

EVENT: Json = {
    "type": "x",
    "data": {
        "messageSeqs": [1, 2],
        "list": [{"shadowedSeqs": [3]}],
        "seq": 4,
        "otherSeqs": ["a"],
        "moreSeqs": 7,
        "flagSeqs": [True],
    },
    "sourceEventSeqs": [],
    "surfaceOp": {"op": "replace", "start": 5, "end": 6},
}


def test_references_are_told_with_their_path() -> None:
    assert list(references(EVENT)) == [
        ("data.list[0].shadowedSeqs", [3]),
        ("data.messageSeqs", [1, 2]),
        ("sourceEventSeqs", []),
        ("surfaceOp", [5, 6]),
    ]


def test_an_appending_operation_is_no_reference() -> None:
    assert list(references({"surfaceOp": "append"})) == []
    assert list(references({"surfaceOp": {"start": 1, "end": None}})) == []


def test_without_references_shifted_events_are_equal() -> None:
    bare = without_references(EVENT)

    assert bare["data"]["messageSeqs"] == bare["surfaceOp"] == "refs"
    assert bare["data"]["list"] == [{"shadowedSeqs": "refs"}]
    assert bare["data"]["otherSeqs"] == ["a"]
    assert EVENT["sourceEventSeqs"] == []


def test_a_place_without_counterpart_is_left_out() -> None:
    assert mapped([1, 2, 3], {1: 5, 3: 7}) == [5, 7]
