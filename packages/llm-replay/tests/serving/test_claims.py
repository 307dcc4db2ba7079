import json
import os
from pathlib import Path

import pytest
from replay_kit import schema_problems

from llm_replay.claims import ClaimFiles, Claims, NoClaims
from llm_replay.verdict import VERDICT_SCHEMA, VerdictWriter


def other_process(directory: Path, *lines: str, name: str = "1-other.jsonl") -> None:
    """Write what an installation of another process told."""
    (directory / name).write_text("".join(f"{line}\n" for line in lines))


def bound(script: int, session: str) -> str:
    return json.dumps({"fact": "bound", "script": script, "session": session})


def called(script: int, call: int) -> str:
    return json.dumps({"fact": "call", "script": script, "call": call})


def test_a_claim_holds_the_session_and_leaves_nothing_else_behind(verdict_dir: Path) -> None:
    assert ClaimFiles(verdict_dir).take(3, "live") == 0

    assert [path.name for path in verdict_dir.iterdir()] == ["3.claim"]
    assert (verdict_dir / "3.claim").read_text() == '{"session": "live"}\n'


def test_the_claim_of_the_anonymous_session_holds_the_process_too(verdict_dir: Path) -> None:
    assert ClaimFiles(verdict_dir).take(0, None) == 0

    content = json.loads((verdict_dir / "0.claim").read_bytes())
    assert content == {"session": None, "pid": os.getpid()}


def test_claims_are_valid_by_the_published_schema(verdict_dir: Path) -> None:
    schema = json.loads(VERDICT_SCHEMA.read_bytes())
    claim = {"$ref": "#/$defs/claim", "$defs": schema["$defs"]}
    claims = ClaimFiles(verdict_dir)
    claims.take(0, "live \ud800")
    claims.take(1, None)

    contents = [json.loads((verdict_dir / f"{n}.claim").read_bytes()) for n in (0, 1)]
    assert [schema_problems(claim, content) for content in contents] == [[], []]


def test_a_script_is_claimed_by_one_session_alone(verdict_dir: Path) -> None:
    first, second = ClaimFiles(verdict_dir), ClaimFiles(verdict_dir)
    first.take(0, "a")

    assert second.take(0, "b") is None
    assert second.take(1, "b") == 0
    second.release()
    assert (verdict_dir / "0.claim").exists()


def test_the_anonymous_session_of_another_process_is_another_session(verdict_dir: Path) -> None:
    (verdict_dir / "0.claim").write_text('{"session": null, "pid": 1}\n')

    assert ClaimFiles(verdict_dir).take(0, None) is None


def test_a_restarted_owner_finds_its_claim_and_the_last_call_of_all_files(
    verdict_dir: Path,
) -> None:
    (verdict_dir / "1.claim").write_text('{"session": "live"}\n')
    other_process(verdict_dir, bound(1, "live"), called(1, 1), called(0, 7), name="1-a.jsonl")
    other_process(verdict_dir, bound(1, "live"), called(1, 2), name="2-b.jsonl")
    claims = ClaimFiles(verdict_dir)

    assert claims.script_of("live") == 1
    assert claims.take(1, "live") == 2


def test_an_owner_that_was_killed_before_its_first_call_begins_at_the_start(
    verdict_dir: Path,
) -> None:
    (verdict_dir / "0.claim").write_text('{"session": "live"}\n')

    assert ClaimFiles(verdict_dir).take(0, "live") == 0


def test_facts_that_lack_something_are_passed_over(verdict_dir: Path) -> None:
    (verdict_dir / "0.claim").write_text('{"session": "live"}\n')
    other_process(verdict_dir, '{"fact":"bound"}', '{"fact":"call","script":0}')

    assert ClaimFiles(verdict_dir).take(0, "live") == 0


def test_a_session_goes_on_although_its_process_released_its_claims(verdict_dir: Path) -> None:
    other_process(verdict_dir, bound(0, "a"), called(0, 1), bound(1, "live"), called(1, 3))
    claims = ClaimFiles(verdict_dir)

    assert claims.script_of("live") == 1
    assert claims.take(1, "live") == 3


def test_a_new_session_takes_no_script_that_another_process_served(verdict_dir: Path) -> None:
    other_process(verdict_dir, bound(0, "a"), called(0, 1))
    claims = ClaimFiles(verdict_dir)

    assert claims.script_of("new") is None
    assert (claims.take(0, "new"), claims.take(0, None), claims.take(1, "new")) == (None, None, 0)


@pytest.mark.parametrize("session", ["new", None])
def test_a_script_that_another_process_served_while_the_verdicts_were_read_is_given_back(
    verdict_dir: Path, monkeypatch: pytest.MonkeyPatch, session: str | None
) -> None:
    link = Path.hardlink_to

    def after_it_came_and_went(claim: Path, finished: Path) -> None:
        other_process(verdict_dir, bound(0, "a"), called(0, 1))
        link(claim, finished)

    monkeypatch.setattr(Path, "hardlink_to", after_it_came_and_went)
    claims = ClaimFiles(verdict_dir)

    assert claims.take(0, session) is None
    assert not list(verdict_dir.glob("*.claim"))
    claims.release()
    assert claims.take(1, session) == 0


def test_a_script_is_left_unclaimed_if_the_verdicts_say_that_it_is_anothers(
    verdict_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_process(verdict_dir, bound(0, "a"))
    monkeypatch.delattr(Path, "hardlink_to")

    assert ClaimFiles(verdict_dir).take(0, "new") is None


def test_what_was_released_in_this_process_is_free_again(verdict_dir: Path) -> None:
    writer = VerdictWriter(verdict_dir)
    first = ClaimFiles(verdict_dir)
    first.take(0, "live")
    writer.bound(0, "live", None)
    writer.call(0, 1)
    first.release()
    first.release()

    assert not list(verdict_dir.glob("*.claim"))
    assert ClaimFiles(verdict_dir).take(0, "new") == 0


def test_the_anonymous_session_had_no_script_before(verdict_dir: Path) -> None:
    other_process(verdict_dir, '{"fact":"bound","script":0,"session":null}')

    assert ClaimFiles(verdict_dir).script_of(None) is None


def test_a_claim_that_is_released_while_it_is_looked_at_can_be_taken(
    verdict_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = verdict_dir / "0.claim"
    claim.write_text('{"session": "a"}\n')
    read = Path.read_bytes

    def released_just_now(path: Path) -> bytes:
        if path == claim:
            path.unlink()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", released_just_now)
    assert ClaimFiles(verdict_dir).take(0, "b") == 0
    assert claim.read_text() == '{"session": "b"}\n'


def test_inside_one_process_nobody_else_has_a_script() -> None:
    claims: Claims = NoClaims()

    assert (claims.script_of("live"), claims.take(3, "live"), claims.take(3, None)) == (None, 0, 0)
    claims.release()
    assert claims.take(3, "live") == 0
