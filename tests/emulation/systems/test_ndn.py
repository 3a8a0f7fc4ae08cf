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


def test_computations_take_as_long_as_the_run_says(tmp_path: Path) -> None:
    options = "--topology star:3 --peers 3 --rounds 3 --compute-us 10000 --slow-peers 1 --slowness 4 --scale 0.2"
    point = real_point("ndn", options, tmp_path)
    assert float(point["total_time_s"]) > 3 * 4 * 0.01
