"""A system in a folder outside the tree on the real clock: its controller and launcher are processes of their own."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from tests.tiny import gradbed, install_tiny

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


def test_one_point_on_the_real_clock(tmp_path: Path) -> None:
    install_tiny(tmp_path / "outside")
    options = ["--topology", "leaf-spine:2,2,2", "--packets", "20", "--scale", "0.2", "--others", "forward"]
    ended = gradbed(tmp_path / "outside", "run", "tiny", *options, "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with (tmp_path / "tiny" / "latest" / "points.csv").open() as file:
        (point,) = csv.DictReader(file)
    assert (point["received_packets"], point["counted_packets"], point["clock"]) == ("40", "40", "real")
    with (tmp_path / "tiny" / "latest" / "hosts.csv").open() as file:
        assert [row["agrees"] for row in csv.DictReader(file)] == ["True"] * 4
