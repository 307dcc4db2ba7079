from pathlib import Path

import pytest

from acp_example.spill import SpillRoot
from acp_example.tools import CallInfo


@pytest.mark.parametrize(
    ("lineage", "folder"),
    [("1", "1"), ("12/1.1.2", "12-1.1.2"), ("1/2.1.3.2/1.1.1", "1-2.1.3.2-1.1.1")],
)
def test_a_spilled_output_is_named_by_its_place(tmp_path: Path, lineage: str, folder: str) -> None:
    call = CallInfo(lineage=lineage, turn=4, step=2, k=10, call_id="random-0c9f")

    path = SpillRoot(tmp_path / "spill").write(call, "bash-stdout.txt", "all of it\n")

    assert path == tmp_path.resolve() / "spill" / folder / "4.2.10-bash-stdout.txt"
    assert path.read_text() == "all of it\n"
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_spilled_output_is_named_by_the_real_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    call = CallInfo(lineage="1", turn=1, step=1, k=1, call_id="c")

    path = SpillRoot(tmp_path / "link").write(call, "out", "half a pair: \ud83d")

    assert path == tmp_path.resolve() / "real/1/1.1.1-out"
    assert path.read_bytes() == b"half a pair: ?"
