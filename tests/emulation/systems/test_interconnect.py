"""The interconnect on the real clock: the same programs, plans and agents in Mininet."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import rows
from tests.emulation.real_point import real_point

pytestmark = pytest.mark.root


@pytest.mark.parametrize("optical", ["p4", "openflow"])
def test_one_point_on_the_real_clock(tmp_path: Path, optical: str) -> None:
    """With optical switches that are P4 switches, and with crossbars of Open vSwitch under the os-ken application."""
    options = "--topology optical-electrical:2 --packets 560 --scale 0.05 --load 0.3"
    if optical == "openflow":
        if shutil.which("ovs-vswitchd") is None:
            pytest.skip("needs Open vSwitch")
        options += " --optical openflow --channels uplink"
    assert real_point("interconnect", options, tmp_path)["loss"] == "0.0"
    pairs = rows(tmp_path / "interconnect" / "latest" / "pairs.csv")
    assert sum(int(row["received_packets"]) for row in pairs) == 560
