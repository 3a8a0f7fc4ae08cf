"""NDN on the real clock: the routers, the controller and the peers are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulation.real_point import real_point

pytestmark = pytest.mark.root


def test_one_point_on_the_real_clock(tmp_path: Path) -> None:
    options = "--workload synthetic --topology leaf-spine:2,1,2 --peers 4 --rounds 2 --scale 0.1"
    point = real_point("ndn", options, tmp_path)
    assert float(point["expected_transmissions"]) == 4 * 6
