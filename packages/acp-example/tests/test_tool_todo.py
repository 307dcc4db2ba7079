from workspace import Workspace

from acp_example.tools.todo import Todo


def test_todo_becomes_a_plan(ws: Workspace) -> None:
    result = ws.run(
        Todo(),
        items=[
            {"content": "look", "status": "completed", "priority": "high"},
            {"content": "change", "status": "in_progress"},
            {"content": "test", "status": "pending"},
        ],
    )

    assert result.text == "The plan has 3 items: 1 pending, 1 in_progress, 1 completed"
    assert result.plan == [
        {"content": "look", "priority": "high", "status": "completed"},
        {"content": "change", "priority": "medium", "status": "in_progress"},
        {"content": "test", "priority": "medium", "status": "pending"},
    ]


def test_an_empty_todo_clears_the_plan(ws: Workspace) -> None:
    result = ws.run(Todo(), items=[])

    assert (result.plan, result.text) == (
        [],
        "The plan has 0 items: 0 pending, 0 in_progress, 0 completed",
    )


def test_a_plan_of_one_item_is_counted_in_the_singular(ws: Workspace) -> None:
    result = ws.run(Todo(), items=[{"content": "look", "status": "pending"}])

    assert result.text == "The plan has 1 item: 1 pending, 0 in_progress, 0 completed"
