"""A shuffle in Mininet: the same agents, packets and checks as on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulation.real_point import real_point

pytestmark = pytest.mark.root


def test_a_shuffle_over_bcube(tmp_path: Path) -> None:
    """The run fails where a link did not carry what the schedule says, or a sample is not the original one."""
    options = "--topology bcube:2,1 --samples 24 --storage 0.5 --scheduler coded-largest --timeout-us 200000"
    point = real_point("shuffle", options, tmp_path)
    assert float(point["counted_hops"]) == float(point["hops"]) > 0
