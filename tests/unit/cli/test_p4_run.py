"""gradbed p4 run: the same packets leave our switch and the reference, and what is wrong is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.cli.p4.run import run
from gradbed.common.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
MATCHING = ROOT / "tests/p4/stf/language/matching.p4"
ENTRIES = "add exact_both key.a:5 key.b:6 found(result:7)\n"


@pytest.mark.parametrize("reference", [False, True])
def test_frames_entries_and_ports(reference: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = tmp_path / "entries.stf"
    entries.write_text(ENTRIES)
    run(MATCHING, ["010005000600", "3:09 0005 0006 00"], entries=[entries], reference=reference)
    assert capsys.readouterr().out.splitlines() == [
        "packet 1, in by port 0: 010005000600",
        "  out by port 1: 010005000607",
        "packet 2, in by port 3: 090005000600",
        "  nothing leaves",
    ]


def test_entries_with_packets_are_refused(tmp_path: Path) -> None:
    entries = tmp_path / "test.stf"
    entries.write_text("packet 0 00\n")
    with pytest.raises(UserError, match="gradbed p4 stf"):
        run(MATCHING, ["00"], entries=[entries])
