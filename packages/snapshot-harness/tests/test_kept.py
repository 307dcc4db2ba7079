import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from guarded import write_suite
from judging import event, log, run

from snapshot_harness.compare import compare
from snapshot_harness.exceptions import FixtureError
from snapshot_harness.fixtures import SESSION, TRANSCRIPT
from snapshot_harness.kept import accept, find_kept, forget, keep

CAUSES = compare(run([log([event("x", {"v": 1})])]), run([log([event("x", {"v": 2})])]))
KEY = "sk-" + "a1B2" * 8
NEW = b'{"new":1}\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path)


def test_what_a_run_left_is_found_again(suite: Path) -> None:
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, causes=CAUSES, environ={})

    (kept,) = find_kept(suite)

    assert place == suite / ".snapshot" / "one" == kept.directory
    assert (kept.scenario, kept.files, kept.causes) == ("one", (TRANSCRIPT,), tuple(CAUSES))
    assert (place / TRANSCRIPT).read_bytes() == NEW
    assert kept.refusals == ()


def test_a_later_run_replaces_it(suite: Path) -> None:
    keep(suite, "one", files={SESSION: b"", TRANSCRIPT: b""}, environ={})
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})

    assert sorted(path.name for path in place.iterdir()) == ["pending.json", TRANSCRIPT]
    assert [path.name for path in (suite / ".snapshot").iterdir()] == ["one"]


def test_accepting_takes_the_files_over_and_forgets_them(suite: Path) -> None:
    (suite / "one" / "session.1.jsonl").write_bytes(b"stale\n")
    keep(suite, "one", files={TRANSCRIPT: NEW}, stale=["session.1.jsonl"], environ={})

    assert accept(suite, find_kept(suite)[0]) == ["session.1.jsonl", TRANSCRIPT]
    assert (suite / "one" / TRANSCRIPT).read_bytes() == NEW
    assert not (suite / "one" / "session.1.jsonl").exists()
    assert find_kept(suite) == []


def test_accepting_keeps_the_spelling_of_equal_lines(suite: Path) -> None:
    (suite / "one" / TRANSCRIPT).write_bytes(b'{"b":1,"a":2}\n{"c":1}\n')
    keep(suite, "one", files={TRANSCRIPT: b'{"a":2,"b":1}\n', "notes.md": b"x"}, environ={})

    accept(suite, find_kept(suite)[0])

    assert (suite / "one" / TRANSCRIPT).read_bytes() == b'{"b":1,"a":2}\n'
    assert (suite / "one" / "notes.md").read_bytes() == b"x"


@pytest.mark.parametrize("name", [TRANSCRIPT, "session.1.jsonl"])
def test_files_of_a_scenario_that_changed_since_are_not_accepted(suite: Path, name: str) -> None:
    keep(suite, "one", files={TRANSCRIPT: NEW}, stale=["session.1.jsonl"], environ={})
    before = (suite / "one" / TRANSCRIPT).read_bytes()
    (suite / "one" / name).write_bytes(b"edited\n")

    with pytest.raises(FixtureError, match="the file changed since the run"):
        accept(suite, find_kept(suite)[0])

    assert (suite / "one" / TRANSCRIPT).read_bytes() in (before, b"edited\n")
    assert len(find_kept(suite)) == 1


def test_files_of_a_run_that_was_wrong_are_not_accepted(suite: Path) -> None:
    keep(suite, "one", files={TRANSCRIPT: NEW}, refusals=["a model call was left"], environ={})

    with pytest.raises(FixtureError, match="a model call was left"):
        accept(suite, find_kept(suite)[0])


def test_nothing_is_accepted_over_a_pending_write(suite: Path) -> None:
    keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    (suite / "one" / "x.new").write_bytes(b"")

    with pytest.raises(FixtureError, match="was interrupted"):
        accept(suite, find_kept(suite)[0])


def test_credentials_are_cut_out_and_bar_the_files(suite: Path) -> None:
    data = f'{{"a":"{KEY}","b":"the value of it"}}\n'.encode() + b"\xff"
    place = keep(
        suite,
        "one",
        files={TRANSCRIPT: data},
        refusals=[f"said {KEY}"],
        environ={"X_TOKEN": "the value of it"},
    )

    assert (place / TRANSCRIPT).read_bytes() == (
        b'{"a":"[an API key]","b":"the value of it"}\n\xff'
    )
    (kept,) = find_kept(suite)
    assert kept.refusals == ("said [an API key]", f"{TRANSCRIPT}:1: an API key was cut out")
    assert not any(KEY.encode() in path.read_bytes() for path in place.iterdir())


def test_the_environment_says_what_is_secret(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "correct horse battery")

    place = keep(suite, "one", files={TRANSCRIPT: b'"correct horse battery"\n'})

    assert (place / TRANSCRIPT).read_bytes() == b'"[the value of SOME_SECRET]"\n'


def test_forgetting_what_is_not_there_is_fine(suite: Path) -> None:
    forget(suite, "one")

    assert find_kept(suite) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "scenario": "one"}', '{"version": 1, "scenario": "b"}']
)
def test_what_no_run_left_is_refused(suite: Path, text: str) -> None:
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    (place / "pending.json").write_text(text)

    with pytest.raises(FixtureError, match="not what this version of the harness leaves"):
        find_kept(suite)


@pytest.mark.parametrize("key", ["files", "base"])
def test_a_file_elsewhere_is_refused(suite: Path, key: str) -> None:
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    text = (place / "pending.json").read_text()
    facts = json.loads(text)
    facts[key] = ["../two"] if key == "files" else {"../two": None}
    (place / "pending.json").write_text(json.dumps(facts))

    with pytest.raises(FixtureError, match="not what this version"):
        find_kept(suite)


def test_half_a_folder_is_passed_over(suite: Path) -> None:
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    place.rename(place.with_name(".one.17"))
    (suite / ".snapshot" / "empty").mkdir()

    assert find_kept(suite) == []


def test_facts_are_readable_json(suite: Path) -> None:
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, causes=CAUSES, environ={})

    facts = json.loads((place / "pending.json").read_text())

    assert facts["version"] == 1
    assert facts["causes"][0]["path"] == "data.v"
    assert set(facts["base"]) == {TRANSCRIPT}


def replaced(suite: Path) -> None:
    keep(suite, "one", files={TRANSCRIPT: b'{"newer":1}\n'}, environ={})


def same_facts(suite: Path) -> None:
    (suite / ".snapshot" / "one" / TRANSCRIPT).write_bytes(b'{"newer":1}\n')


def gone(suite: Path) -> None:
    forget(suite, "one")


@pytest.mark.parametrize("meanwhile", [replaced, same_facts, gone])
def test_what_was_not_shown_is_not_accepted(suite: Path, meanwhile: Callable[[Path], None]) -> None:
    keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    (shown,) = find_kept(suite)
    before = (suite / "one" / TRANSCRIPT).read_bytes()
    meanwhile(suite)

    with pytest.raises(FixtureError) as caught:
        accept(suite, shown)

    assert str(caught.value) == (
        f"{shown.directory}: what was kept here is another by now, or gone\n"
        "  Another run or another review came in between.\n"
        "  hint: review again"
    )
    assert (suite / "one" / TRANSCRIPT).read_bytes() == before


def test_what_another_review_settles_meanwhile_is_not_found(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    read = Path.read_bytes

    def settled(path: Path) -> bytes:
        forget(suite, "one")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", settled)

    assert find_kept(suite) == []


def test_a_kept_file_that_is_missing_is_told(suite: Path) -> None:
    place = keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})
    (place / TRANSCRIPT).unlink()

    with pytest.raises(FixtureError, match="not what this version"):
        find_kept(suite)


def test_two_runs_that_keep_at_once_leave_the_files_of_one(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, others = Path.rename, [b"first other", b"second other"]

    def raced(path: Path, target: Path) -> Path:
        if others:
            target.mkdir(parents=True)
            (target / TRANSCRIPT).write_bytes(others.pop())
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", raced)

    place = keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})

    assert (place / TRANSCRIPT).read_bytes() == NEW
    assert [entry.name for entry in (suite / ".snapshot").iterdir()] == ["one"]


def test_a_place_that_can_not_be_had_is_an_error_and_leaves_nothing(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path, __: Path) -> Path:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(Path, "rename", refused)

    with pytest.raises(OSError, match="not empty"):
        keep(suite, "one", files={TRANSCRIPT: NEW}, environ={})

    assert list((suite / ".snapshot").iterdir()) == []
