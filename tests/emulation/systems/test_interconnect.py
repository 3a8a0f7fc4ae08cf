"""The interconnect on the real clock: the same programs, plans and agents in Mininet."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest

from tests.tiny import ROOT, gradbed

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


@pytest.mark.parametrize("optical", ["p4", "openflow"])
def test_one_point_on_the_real_clock(tmp_path: Path, optical: str) -> None:
    """With optical switches that are P4 switches, and with crossbars of Open vSwitch under the os-ken application."""
    options = ["--topology", "optical-electrical:2", "--packets", "560", "--scale", "0.05", "--load", "0.3"]
    if optical == "openflow":
        if shutil.which("ovs-vswitchd") is None:
            pytest.skip("needs Open vSwitch")
        options += ["--optical", "openflow", "--channels", "uplink"]
    ended = gradbed(ROOT, "run", "interconnect", "--clock", "real", *options, "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with (tmp_path / "interconnect" / "latest" / "points.csv").open() as file:
        (point,) = csv.DictReader(file)
    assert (point["clock"], point["loss"]) == ("real", "0.0")
    with (tmp_path / "interconnect" / "latest" / "pairs.csv").open() as file:
        assert sum(int(row["received_packets"]) for row in csv.DictReader(file)) == 560
