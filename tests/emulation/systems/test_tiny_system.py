"""A system in a folder outside the tree on the real clock: its controller and launcher are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import rows, run_well
from tests.tiny import install_tiny

pytestmark = pytest.mark.root


def test_one_trial_on_the_real_clock(tmp_path: Path) -> None:
    install_tiny(tmp_path / "outside")
    options = ["--topology", "leaf-spine:2,2,2", "--packets", "20", "--scale", "0.2", "--others", "forward"]
    run_well("run", "tiny", *options, "--output", tmp_path, PYTHONPATH=tmp_path / "outside")
    latest = tmp_path / "tiny" / "latest"
    (trial,) = rows(latest / "trials.csv")
    assert (trial["received_packets"], trial["counted_packets"], trial["clock"]) == ("40", "40", "real")
    assert [row["agrees"] for row in rows(latest / "hosts.csv")] == ["True"] * 4
