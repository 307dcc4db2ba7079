import itertools

import pytest

from llm_replay.claims import NoClaims
from llm_replay.cursors import Cursor, Cursors, Track
from llm_replay.exceptions import ReplayExhaustedError, TwoStreamsError, UnknownSessionError


class Others(NoClaims):
    """Claims of another process: `theirs` are taken, `earlier` is what a session had before."""

    def __init__(
        self, theirs: set[int] | None = None, earlier: dict[str, int] | None = None
    ) -> None:
        self.theirs = theirs or set()
        self.earlier = earlier or {}

    def script_of(self, session: str | None) -> int | None:
        return None if session is None else self.earlier.get(session)

    def take(self, script: int, session: str | None) -> int | None:
        if script in self.theirs:
            return None
        return 1 if script == self.script_of(session) else 0


def track(index: int, calls: int = 1, lineage: str | None = None) -> Track:
    return Track(index=index, file=f"session.{index}.jsonl", calls=calls, lineage=lineage)


def cursors(*tracks: Track, claims: NoClaims | None = None) -> Cursors:
    return Cursors(tracks, claims or NoClaims(), lambda _track, _session, _lineage: None)


def index_of(found: Cursor) -> int:
    return found.track.index


def test_sessions_without_lineage_take_scripts_in_order_of_their_first_calls() -> None:
    served = cursors(track(0), track(2), track(1))

    assert [index_of(served.of(name, None)) for name in ("b", "a", "b", "c")] == [0, 2, 0, 1]


def test_a_session_takes_the_script_of_its_lineage_whatever_the_order() -> None:
    served = cursors(
        track(0, lineage="1"), track(1, lineage="1/1.1.1"), track(2, lineage="1/1.1.2")
    )

    order = [("x", "1/1.1.2"), ("y", "1"), ("z", "1/1.1.1"), ("x", "1/1.1.2")]
    assert [index_of(served.of(*session)) for session in order] == [2, 0, 1, 2]


def test_a_lineage_that_was_not_recorded_takes_no_other_script() -> None:
    served = cursors(track(0, lineage="1"), track(1, lineage="1/1.1.1"))

    with pytest.raises(UnknownSessionError, match=r"of lineage '1/1\.1\.2' has no recorded script"):
        served.of("x", "1/1.1.2")


def test_a_second_session_of_the_same_lineage_is_unknown() -> None:
    served = cursors(track(0, lineage="1"))
    served.of("x", "1")

    with pytest.raises(UnknownSessionError):
        served.of("y", "1")


def test_scripts_without_lineage_are_taken_in_order_by_sessions_that_have_one() -> None:
    served = cursors(track(0), track(1))

    assert index_of(served.of("child", "1/1.1.1")) == 0
    assert index_of(served.of("parent", "1")) == 1


def test_a_session_without_lineage_takes_scripts_that_have_one_in_order() -> None:
    served = cursors(track(0, lineage="1"), track(1, lineage="1/1.1.1"))

    assert [index_of(served.of(name, None)) for name in ("a", "b")] == [0, 1]


def test_beside_sessions_with_lineage_one_without_prefers_a_script_without() -> None:
    served = cursors(track(0, lineage="1"), track(1, lineage="1/1.1.1"), track(2))
    served.of("parent", "1")

    assert index_of(served.of("started by no call", None)) == 2


def test_scripts_without_calls_are_passed_over_in_order() -> None:
    served = cursors(track(0, calls=0), track(1))

    assert index_of(served.of("a", None)) == 1
    with pytest.raises(UnknownSessionError):
        served.of("b", None)


def test_calls_without_a_session_id_are_one_session_bound_to_the_primary() -> None:
    served = cursors(track(0, calls=2), track(1))

    assert [served.of(None, None).advance() for _ in range(2)] == [1, 2]
    assert index_of(served.of("named", None)) == 1


def test_the_anonymous_session_takes_no_script_but_the_primary() -> None:
    served = cursors(track(0), track(1))
    served.of("named", None)

    with pytest.raises(UnknownSessionError, match="the anonymous session has no recorded script"):
        served.of(None, None)


def test_a_script_that_another_process_claimed_is_passed_over() -> None:
    served = cursors(track(0), track(1), claims=Others(theirs={0}))

    assert index_of(served.of("a", None)) == 1


def test_a_session_goes_on_with_the_script_it_had_before_a_restart() -> None:
    claims = Others(earlier={"second": 1})
    served = cursors(track(0, calls=2), track(1, calls=2), claims=claims)

    found = served.of("second", None)
    assert (index_of(found), found.advance()) == (1, 2)


@pytest.mark.parametrize("order", list(itertools.permutations("aabbc")))
def test_each_session_has_its_own_cursor(order: tuple[str, ...]) -> None:
    names = {"a": "1", "b": "2", "c": "3"}
    served = cursors(*(track(i, calls=2, lineage=names[n]) for i, n in enumerate("abc")))

    calls = [(name, served.of(name, names[name]).advance()) for name in order]
    assert sorted(calls) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]
    assert served.leftovers() == [("session.2.jsonl", 1, 2)]


def test_a_call_too_many_says_how_many_were_recorded_and_what_to_do() -> None:
    cursor = cursors(track(0, calls=1)).of("a", None)
    cursor.advance()

    with pytest.raises(ReplayExhaustedError) as caught:
        cursor.advance()
    assert str(caught.value) == (
        "session.0.jsonl: the agent asked for model call 2, and 1 are recorded\n"
        "  The run took another course than the recording.\n"
        "  hint: find out why, or record the scenario again"
    )


def test_a_cursor_that_is_used_up_stays_where_it_is() -> None:
    cursor = Cursor(track(0, calls=0), 0)

    for _ in range(2):
        with pytest.raises(ReplayExhaustedError, match="model call 1, and 0 are recorded"):
            cursor.advance()


def test_a_session_reads_one_stream_at_a_time() -> None:
    cursor = Cursor(track(0, calls=2), 2)

    with cursor.reading(1), pytest.raises(TwoStreamsError) as caught, cursor.reading(2):
        pass
    with cursor.reading(2):
        assert cursor.open
    assert str(caught.value) == (
        "session.0.jsonl: model call 2 was asked for while another of its session was open\n"
        "  A session's calls are served in order, so only one may be open.\n"
        "  hint: read each stream to its end, or close it, before asking for the next"
    )


def test_an_unknown_session_says_who_asked_and_what_a_changed_order_means() -> None:
    with pytest.raises(UnknownSessionError) as caught:
        cursors().of("live-7", None)
    assert str(caught.value) == (
        "the session 'live-7' has no recorded script that is free (0 recorded)\n"
        "  Each live session takes one script: that of its lineage, else the next in order.\n"
        "  hint: a changed order of calls means that the scenario must be recorded again"
    )


def test_who_takes_what_is_told_once() -> None:
    seen: list[tuple[int, str | None, str | None]] = []
    tracks = [track(0, lineage="1", calls=2)]
    served = Cursors(tracks, NoClaims(), lambda *bound: seen.append((bound[0].index, *bound[1:])))

    served.of("a", "1")
    served.of("a", "1")
    assert seen == [(0, "a", "1")]
