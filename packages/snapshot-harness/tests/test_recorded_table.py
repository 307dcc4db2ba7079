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
        ('[env]\nA = "[recorded]"\n', f'[env]\nA = "[recorded]"\n\n{TABLE}'),
    ],
)
def test_the_table_is_replaced_and_the_rest_kept(before: str, after: str) -> None:
    written = with_recorded(before, FACTS)

    assert written == after
    assert tomllib.loads(written)["recorded"] == FACTS
    assert with_recorded(written, FACTS) == written
