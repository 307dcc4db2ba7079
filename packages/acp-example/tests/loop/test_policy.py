from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from loop_bench import FakeTool, Make
from pydantic import ValidationError

from acp_example.config import AgentTable
from acp_example.paths import roots_for
from acp_example.permissions import Approvals, Grants, Mode, Policy, offered
from acp_example.tools import Review
from acp_example.tools.write import Write
from llm_replay.scripted_model import call, say


def where(given: Mapping[str, Any]) -> list[str]:
    return [str(given.get("path", ""))]


def policy(mode: Mode, approvals: Approvals, cwd: Path) -> Policy:
    return Policy(mode=mode, approvals=approvals, paths=roots_for(mode, cwd=cwd), grants=Grants())


LOOK = FakeTool("look", kind="read").spec
EDIT = FakeTool("edit", kind="edit", path_policy="write", locations=where).spec
RUN = FakeTool("run", kind="execute").spec

TABLE: list[tuple[Mode, Approvals, str]] = [
    ("read-only", "strict", "allow deny ask"),
    ("read-only", "on-request", "allow deny ask"),
    ("read-only", "never", "allow deny deny"),
    ("workspace-write", "strict", "allow ask ask"),
    ("workspace-write", "on-request", "allow allow ask"),
    ("workspace-write", "never", "allow allow allow"),
    ("full-access", "strict", "allow ask ask"),
    ("full-access", "on-request", "allow allow allow"),
    ("full-access", "never", "allow allow allow"),
]


@pytest.mark.parametrize(("mode", "approvals", "verdicts"), TABLE)
def test_run_policy_decides_by_mode_and_approvals(
    tmp_path: Path, mode: Mode, approvals: Approvals, verdicts: str
) -> None:
    rules = policy(mode, approvals, tmp_path)

    found = [rules.judge(spec, {"path": "a"}).verdict for spec in (LOOK, EDIT, RUN)]

    assert " ".join(found) == verdicts


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "full-access"])
@pytest.mark.parametrize("approvals", ["strict", "on-request", "never"])
@pytest.mark.parametrize("review", ["allow", "deny", "ask", None])
def test_generic_deny_is_never_overridden(
    tmp_path: Path, mode: Mode, approvals: Approvals, review: Review | None
) -> None:
    tool = FakeTool(
        "edit",
        kind="edit",
        path_policy="write",
        locations=where,
        review=lambda _given, _mode: review,
    )
    rules = policy(mode, approvals, tmp_path)

    outside = rules.judge(tool.spec, {"path": "/etc/passwd"})
    inside = rules.judge(tool.spec, {"path": "a.txt"})
    rules.grants.remember("edit", "reject_always")
    rejected = rules.judge(tool.spec, {"path": "a.txt"})

    if mode == "read-only":
        assert (outside.verdict, outside.code) == ("deny", "PERMISSION_DENIED")
    elif mode == "workspace-write":
        assert (outside.verdict, outside.code) == ("deny", "PATH_OUTSIDE_ALLOWED_ROOT")
    else:
        assert outside.verdict == inside.verdict
    if mode != "read-only" and review is not None:
        assert inside.verdict == review
    assert (rejected.verdict, rejected.source) == ("deny", "user")


def test_tool_may_allow_a_harmless_command_even_in_strict_read_only(tmp_path: Path) -> None:
    tool = FakeTool("run", kind="execute", review=lambda _given, _mode: "allow")

    judgement = policy("read-only", "strict", tmp_path).judge(tool.spec, {})

    assert (judgement.verdict, judgement.source) == ("allow", "tool")


def test_tool_may_deny_a_harmful_command_even_where_nobody_is_asked(tmp_path: Path) -> None:
    tool = FakeTool("run", kind="execute", review=lambda _given, _mode: "deny")

    judgement = policy("read-only", "never", tmp_path).judge(tool.spec, {})

    assert (judgement.verdict, judgement.code) == ("deny", "PERMISSION_DENIED")
    assert judgement.message == "'run' may not do this in mode 'read-only'"


def test_standing_allowance_does_not_beat_a_denial(tmp_path: Path) -> None:
    rules = policy("workspace-write", "on-request", tmp_path)
    rules.grants.remember("edit", "allow_always")

    assert rules.judge(EDIT, {"path": "../x"}).verdict == "deny"


def test_standing_allowance_spares_the_question(tmp_path: Path) -> None:
    rules = policy("workspace-write", "strict", tmp_path)
    rules.grants.remember("edit", "allow_always")

    judgement = rules.judge(EDIT, {"path": "a"})

    assert (judgement.verdict, judgement.source) == ("allow", "user")


def test_read_only_offers_nothing_that_writes() -> None:
    tools = [FakeTool("edit", path_policy="write"), FakeTool("look")]

    assert [tool.spec.name for tool in offered(tools, "read-only")] == ["look"]
    assert len(offered(tools, "workspace-write")) == 2


@pytest.mark.parametrize(
    ("mode", "path", "text"),
    [
        (
            "read-only",
            "a.txt",
            "Error [PERMISSION_DENIED]: 'edit' may not run: this session is read-only",
        ),
        (
            "workspace-write",
            "/etc/a.txt",
            (
                "Error [PATH_OUTSIDE_ALLOWED_ROOT]: cannot write '/etc/a.txt': "
                "it leads out of the workspace '{cwd}'"
            ),
        ),
    ],
)
def test_denied_call_never_starts(bench: Make, mode: str, path: str, text: str) -> None:
    tool = FakeTool("edit", kind="edit", path_policy="write", locations=where)
    agent = bench(call("c", "edit", {"path": path}), say("ok"), tools=[tool], permission_mode=mode)

    agent.prompt()

    assert tool.started == []
    assert agent.client.statuses("1.1.1") == ["pending", "failed"]
    assert agent.results() == {"c": text.format(cwd=agent.directory)}


@pytest.mark.parametrize(
    ("mode", "path"), [("read-only", "new.txt"), ("workspace-write", "../new.txt")]
)
def test_denied_write_leaves_no_file(bench: Make, mode: str, path: str) -> None:
    arguments = {"path": path, "content": "x"}
    agent = bench(call("c", "write", arguments), say("ok"), tools=[Write()], permission_mode=mode)
    around = set(agent.cwd.parent.rglob("new.txt"))

    assert agent.prompt().stop_reason == "end_turn"
    assert agent.result_blocks()[0]["isError"] is True
    assert set(agent.cwd.parent.rglob("new.txt")) == around == set()
    assert agent.client.statuses("1.1.1") == ["pending", "failed"]


def test_read_only_session_that_nobody_may_be_asked_about_runs_no_command(bench: Make) -> None:
    tool = FakeTool("run", kind="execute")
    agent = bench(
        call("c", "run"), say("ok"), tools=[tool], permission_mode="read-only", approvals="never"
    )

    agent.prompt()

    assert agent.results() == {
        "c": "Error [PERMISSION_DENIED]: 'run' may not run: this session is read-only"
    }


def test_recoverable_tool_error_is_plain_coded_text(bench: Make) -> None:
    tool = FakeTool("look", kind="read", path_policy="read", locations=where)
    agent = bench(
        call("c", "look", {"path": "../secret"}),
        say("ok"),
        tools=[tool],
        permission_mode="workspace-write",
    )

    assert agent.prompt().stop_reason == "end_turn"
    result = agent.model.requests[1].tool_result("c")
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Error [PATH_OUTSIDE_ALLOWED_ROOT]: ")
    assert "1.1.1 in_progress" not in agent.client.kinds()


def test_policy_defaults_are_safe() -> None:
    table = AgentTable()

    assert table.permission_mode == "read-only"
    assert table.approvals == "on-request"
    assert table.permission_timeout_s is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("permission_mode", "yolo"),
        ("approvals", "sometimes"),
        ("permission_timeout_s", 0),
        ("max_rounds", 0),
        ("max_tool_calls", 0),
        ("max_turn_tokens", 0),
        ("repeat_limit", "3"),
    ],
)
def test_invalid_policy_reports_field(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        AgentTable(**{field: value})  # type: ignore[arg-type] # wrong on purpose

    assert caught.value.errors()[0]["loc"] == (field,)
