import tomllib

import pytest

from snapshot_harness.recorded_table import with_recorded

FACTS = {"endpoint": 'a "b" \\', "date": "2026-01-01"}
TABLE = '[recorded]\nendpoint = "a \\"b\\" \\\\"\ndate = "2026-01-01"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('why = "w"\n', f'why = "w"\n\n{TABLE}'),
        ('why = "w"', f'why = "w"\n\n{TABLE}'),
        ('why = "w"\n\n[recorded]\nmodel = "m"\n', f'why = "w"\n\n{TABLE}'),
        (
            'why = "w"\n[recorded] # by a machine\nmodel = "m"\n\n[env]\nA = "1"\n',
            f'why = "w"\n{TABLE}\n[env]\nA = "1"\n',
        ),
        (
            'why = "w"\n [ recorded ]\nmodel = "m"\n# About the variables.\n\n# A:\n[env]\nA = "1"',
            f'why = "w"\n{TABLE}\n# About the variables.\n\n# A:\n[env]\nA = "1"\n',
        ),
        ('[env]\nA = "[recorded]"\n', f'[env]\nA = "[recorded]"\n\n{TABLE}'),
    ],
)
def test_the_table_is_replaced_and_the_rest_kept(before: str, after: str) -> None:
    written = with_recorded(before, FACTS)

    assert written == after
    assert tomllib.loads(written)["recorded"] == FACTS
    assert with_recorded(written, FACTS) == written


@pytest.mark.parametrize(
    "text",
    [
        'why = "w"\nrecorded = { model = "m" }\n',
        'why = "w"\nrecorded.model = "m"\n',
        'why = "w"\n["recorded"]\nmodel = "m"\n',
        'why = "w"\n[recorded.by]\nmodel = "m"\n',
        'why = "w"\n[recorded]\nmodels = [\n["m"]\n]\n',
        'why = """\n[recorded]\n"""\n',
    ],
)
def test_another_form_is_refused_before_the_file_is_spoilt(text: str) -> None:
    with pytest.raises(ValueError, match="no table of its own"):
        with_recorded(text, FACTS)


def test_what_an_agent_calls_itself_is_always_toml() -> None:
    written = with_recorded('why = "w"\n', {"agent": 'a\x7fb\ud800\n"c"'})

    assert tomllib.loads(written.encode().decode())["recorded"] == {"agent": 'a\x7fb?\n"c"'}
