import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import FINISH, Json, json_values, text

from llm_replay.exceptions import UnresolvedRootError
from llm_replay.tokens import (
    Roots,
    check_tokens,
    check_value,
    normalize_chunks,
    normalize_value,
    serve_chunks,
    serve_text,
    serve_value,
    tokenize_roots,
)


def roots_below(run: str, *, cwd: str = "") -> Roots:
    """Return the roots of a run as the harness lays them out."""
    return Roots(
        run=run,
        cwd=cwd or f"{run}/cwd",
        home=f"{run}/home",
        tmp=f"{run}/tmp",
        sessions=f"{run}/sessions",
        spill=f"{run}/spill",
    )


RUN = "/tmp/dsh-Aq3"
HERE = roots_below(RUN)
ELSEWHERE = roots_below("/var/f/dsh-Zk9", cwd="/home/u/ws-B8")
NO_ROOTS = Roots()
TOUCHES = "'{{run}}' stands directly before what would make it another directory"


def pieces(*texts: str, index: int = 0) -> list[Json]:
    return [text(piece, index=index) for piece in texts]


def texts_of(chunks: Sequence[Json]) -> list[str]:
    return [chunk["text"] for chunk in chunks]


def normalized(*texts: str, roots: Roots = HERE) -> list[str]:
    return texts_of(normalize_chunks(pieces(*texts), roots))


def test_roots_become_tokens_longest_first_and_whatever_stands_around_them() -> None:
    told = f"x{RUN}/cwdy {RUN}/home/a {RUN}/tmp{RUN}/spill '{RUN}/sessions' {RUN}"

    assert tokenize_roots(told, HERE) == (
        "x{{cwd}}y {{home}}/a {{tmp}}{{spill}} '{{sessions}}' {{run}}"
    )
    assert tokenize_roots("{{ stays }}", HERE) == "{{ stays }}"
    assert tokenize_roots(told, NO_ROOTS) == told


def test_a_root_that_is_the_root_of_all_is_no_token() -> None:
    assert tokenize_roots("/a/b", Roots(cwd="/")) == "/a/b"
    assert serve_text("{{cwd}}a", Roots(cwd="/")) == "/a"


def test_two_roots_in_one_place_are_the_first_of_them() -> None:
    assert tokenize_roots("/w", Roots(tmp="/w", cwd="/w")) == "{{cwd}}"


@pytest.mark.parametrize(
    "after", ["/r/dsh-Aq3/home", "/home/u/ws-B8", "/r/dsh-Aq3", "/cwd", "/cwd2", "/spill/x"]
)
def test_the_run_is_no_token_directly_before_what_would_make_it_another_root(after: str) -> None:
    roots = Roots(run="/r/dsh-Aq3", cwd="/home/u/ws-B8", tmp="/r/dsh-Aq3/tmp")

    assert tokenize_roots("/r/dsh-Aq3" + after, roots).startswith("/r/dsh-Aq3")
    assert check_value(normalize_value("/r/dsh-Aq3" + after, roots)) == []


def test_two_braces_become_a_token_read_from_the_left() -> None:
    assert normalized("{{cwd}} {{{ {{{{{") == ["{{lit}}cwd}} {{lit}}{ {{lit}}{{lit}}{"]


def test_a_brace_before_a_root_stays_a_brace() -> None:
    assert normalized("${" + RUN + "}") == ["${{{run}}}"]
    assert serve_text("${{{run}}}", HERE) == "${" + RUN + "}"


def test_a_token_stands_whole_in_the_delta_in_which_its_value_begins() -> None:
    cut = ["a/t", "mp/dsh-", "", "Aq3/cw", "d/b {", "{", "x"]

    assert normalized(*cut) == ["a{{cwd}}", "", "", "", "/b {{lit}}", "", "x"]
    assert serve_chunks(pieces("a{{cwd}}", "", "/b {{lit}}", ""), HERE) == pieces(
        f"a{RUN}/cwd", "", "/b {{", ""
    )


def test_deltas_of_other_blocks_and_kinds_are_other_texts() -> None:
    first, second = RUN[:5], RUN[5:]
    kinds: list[Json] = [
        text(first),
        text(second, index=1),
        {"type": "reasoning-delta", "index": 0, "text": second},
        {"type": "text-delta", "index": [0], "text": second},
        {"type": "text-delta", "text": second},
    ]

    assert normalize_chunks(kinds, HERE) == kinds
    assert normalize_chunks([kinds[0], kinds[1], text(second)], HERE) == [
        text("{{run}}"),
        kinds[1],
        text(""),
    ]


def test_every_other_string_is_a_text_of_its_own_and_keys_are_left_alone() -> None:
    path, token = f"{RUN}/cwd", "{{cwd}}"
    chunks: list[Json] = [
        {"type": "tool-call-delta", "index": 0, "id": path, "argumentsDelta": path, "x": [path]},
        {"type": "block-end", "index": 0, "block": {"type": "tool-call", "arguments": path}},
        {"type": "finish", "reason": {"kind": "error", "failure": {"message": path}}},
        {"type": "finish", "replayState": {path: [path, {"a": path}, 1, None]}},
        {"type": ["new"], "text": path},
        {"type": "text-delta", "index": 0, "text": [path]},
    ]
    expected: Any = json.loads(json.dumps(chunks).replace(path, token))
    expected[3]["replayState"] = {path: [token, {"a": token}, 1, None]}

    assert normalize_chunks(chunks, HERE) == expected
    assert serve_chunks(expected, HERE) == chunks
    assert check_tokens(expected) == []


def test_what_was_given_is_not_changed() -> None:
    given_chunks = pieces(RUN, "{{")
    normalize_chunks(given_chunks, HERE)
    serve_chunks(given_chunks, HERE)

    assert given_chunks == pieces(RUN, "{{")


def test_what_is_served_is_not_read_again() -> None:
    assert serve_value("{{lit}}cwd}} {{lit}}{{lit}}", HERE) == "{{cwd}} {{{{"
    assert serve_value({"{{cwd}}": ["{{cwd}}"]}, HERE) == {"{{cwd}}": [f"{RUN}/cwd"]}


def test_what_is_no_served_token_is_served_as_it_is() -> None:
    assert serve_value("{{uuid:1}} {{cwd }} {{system}}", HERE) == "{{uuid:1}} {{cwd }} {{system}}"


def test_a_root_that_is_not_known_cannot_be_served() -> None:
    with pytest.raises(UnresolvedRootError) as caught:
        serve_text("a {{spill}}", Roots(cwd="/w"))

    assert (caught.value.kind, caught.value.token) == ("unresolved-root", "{{spill}}")
    assert str(caught.value) == (
        "{{spill}} can't be served: this process doesn't know that directory\n"
        "  It comes from the environment variable DSH_SNAPSHOT_SPILL_ROOT, which is not set.\n"
        "  hint: set DSH_SNAPSHOT_SPILL_ROOT for the agent under test"
    )


def test_roots_of_a_process_come_from_its_environment_and_its_directory() -> None:
    environ = {
        "PWD": "/elsewhere",
        "HOME": "/h/",
        "TMPDIR": "/",
        "DSH_SNAPSHOT_SESSIONS_ROOT": "/s",
        "DSH_SNAPSHOT_SPILL_ROOT": "",
    }

    assert Roots.from_environment(environ, "/w") == Roots(
        cwd="/w", home="/h", tmp="/", sessions="/s"
    )


@pytest.mark.parametrize(
    ("bad", "place", "told"),
    [
        (["ok", "a {{uuid:1}}"], 1, "'{{' begins no token that is served, in 'oka {{uuid:1}}'"),
        (["{{fromRequest:x}}"], 0, "'{{' begins no token that is served, in '{{fromRequest:x}}'"),
        (["{{{lit}}"], 0, "'{{' begins no token that is served, in '{{{lit}}'"),
        (["a{", "{b"], 0, "'{{' begins no token that is served, in 'a{{b'"),
        (["{{cwd", "}}"], 0, "the token {{cwd}} is cut by the end of a delta"),
        (["", "{", "{cwd}}"], 1, "the token {{cwd}} is cut by the end of a delta"),
        (["{{run}}{{tmp}}"], 0, f"{TOUCHES}, in '{{{{run}}}}{{{{tmp}}}}'"),
        (["{{run}}", "/spill"], 0, f"{TOUCHES}, in '{{{{run}}}}/spill'"),
    ],
)  # fmt: skip
def test_what_normalizing_cannot_have_made_is_told(bad: list[str], place: int, told: str) -> None:
    assert check_tokens(pieces(*bad)) == [(place, told)]
    if len(bad) == 1:
        assert check_value({"a": [bad[0]]}) == [told]


def test_problems_stand_in_the_order_of_their_chunks() -> None:
    found = check_tokens([*pieces("{{a"), *pieces("{{b", index=1), {"x": "{{c"}, FINISH])

    assert [place for place, _ in found] == [0, 1, 2]


# Texts of pieces that touch: directories, braces, tokens, and JSON inside JSON.

LOOSE = ["{", "}", "{{", "}}", "lit}}", "cwd", "/cwd", "/tmp", "/", "x", "é\ud83d", '"', "\\", " "]
TOKENS = ["{{lit}}", "{{cwd}}", "{{run}}", "{{tmp}}", "{{home}}", "{{uuid:1}}", "{{fromRequest:x}}"]
VALUES = [RUN, f"{RUN}/cwd", f"{RUN}/tmp", f"{RUN}/home", "/home/u/ws-A7", RUN[:7], RUN[7:]]

layouts = st.sampled_from([HERE, roots_below(RUN, cwd="/home/u/ws-A7"), Roots(cwd=f"{RUN}/cwd")])


def joined_from(words: Sequence[str]) -> st.SearchStrategy[str]:
    plain = st.lists(st.sampled_from(words), max_size=8).map("".join)
    dumped = plain.map(lambda inner: json.dumps({"a": inner, "b": [inner]}))
    return st.one_of(plain, dumped, dumped.map(json.dumps), dumped.map(lambda inner: inner[:-3]))


@st.composite
def streams(draw: st.DrawFn, words: Sequence[str]) -> list[Json]:
    """The chunks of a call: two blocks cut anywhere, interleaved, each with its end."""
    found: list[Json] = []
    for index in (0, 1):
        whole = draw(joined_from(words))
        cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=6)))
        parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        place = 0
        for delta in pieces(*parts, index=index):
            place = draw(st.integers(place, len(found)))
            found.insert(place, delta)
            place += 1
        found.append({"type": "block-end", "index": index, "block": {"text": whole}})
    return found


def block_texts(chunks: Sequence[Json]) -> list[object]:
    deltas = [
        "".join(texts_of([c for c in chunks if "text" in c and c["index"] == i])) for i in (0, 1)
    ]
    return [*deltas, *(chunk for chunk in chunks if "text" not in chunk)]


@given(streams([*LOOSE, *TOKENS, *VALUES]), layouts)
def test_serving_gives_back_the_texts_that_were_normalized(
    chunks: list[Json], roots: Roots
) -> None:
    fixture = normalize_chunks(chunks, roots)

    assert check_tokens(fixture) == []
    assert block_texts(serve_chunks(fixture, roots)) == block_texts(chunks)
    assert [chunk.keys() for chunk in fixture] == [chunk.keys() for chunk in chunks]


@given(streams([*LOOSE, *TOKENS]), st.sampled_from([HERE, ELSEWHERE]))
def test_a_fixture_that_can_be_read_is_what_its_run_is_normalized_to(
    fixture: list[Json], roots: Roots
) -> None:
    if not check_tokens(fixture):
        assert normalize_chunks(serve_chunks(fixture, roots), roots) == fixture


@given(streams([*LOOSE, *TOKENS, *VALUES]), layouts.filter(lambda roots: roots.run is not None))
def test_a_fixture_recorded_here_is_the_same_when_it_is_served_elsewhere(
    chunks: list[Json], roots: Roots
) -> None:
    fixture = normalize_chunks(chunks, roots)

    assert normalize_chunks(serve_chunks(fixture, ELSEWHERE), ELSEWHERE) == fixture


@given(json_values, joined_from([*LOOSE, *TOKENS, *VALUES]))
def test_any_value_survives_normalizing_and_serving(value: object, told: str) -> None:
    both = [value, {"told": told}]

    assert serve_value(normalize_value(both, HERE), HERE) == both
    assert check_value(normalize_value(both, HERE)) == []


def test_values_nest_as_deeply_as_they_like() -> None:
    value: Any = RUN
    for _ in range(50_000):
        value = [value]
    found = normalize_value(value, HERE)

    while isinstance(found, list):
        [found] = found
    assert found == "{{run}}"
    assert check_value(value) == []
