"""Faults on the real clock, as `gradbed chaos` has them: in short here, all of them among the slow tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradbed.experiments.study.chaos import with_chaos
from tests.command import rows, run_well
from tests.p4.switch_under_test import needs_bmv2

pytestmark = [pytest.mark.thorough, pytest.mark.root]


def verdicts(folder: Path, system: str, *words: str) -> dict[str, str]:
    """What became of each cell. The command has to end well: none has failed."""
    run_well("chaos", system, *words, "--output", folder, timeout_s=3600)
    return {row["fault"]: row["verdict"] for row in rows(folder / f"{system}_chaos" / "latest" / "cells.csv")}


def test_a_few_cells_come_right(tmp_path: Path) -> None:
    # A P4 switch that restarts: test_robustness.py.
    faults = ["a legacy switch restarts" if shutil.which("ovs-vswitchd") else "a P4 switch restarts"]
    chosen = [word for fault in faults for word in ("--fault", fault)]
    found = verdicts(tmp_path, "aggregation", "--clock", "real", "--scale", "0.5", *chosen)
    assert found == dict.fromkeys(["nothing", *faults], "right")


@pytest.mark.nightly  # links on the real clock: tests/emulation/network/test_link_faults.py, BMv2: test_robustness.py
@needs_bmv2
def test_a_link_of_bmv2_is_cut_and_mended(tmp_path: Path) -> None:
    found = verdicts(tmp_path, "workload", "--switch", "bmv2", "--scale", "0.1", "--fault", "a link is cut")
    assert found == {"nothing": "right", "a link is cut": "right"}


@pytest.mark.nightly
@pytest.mark.parametrize("switch", ["gradbed", pytest.param("bmv2", marks=needs_bmv2)])
@pytest.mark.parametrize("system", with_chaos())
def test_every_cell_is_right_or_clear(system: str, switch: str, tmp_path: Path) -> None:
    found = verdicts(tmp_path, system, "--clock", "real", "--switch", switch, "--scale", "0.2")
    assert len(found) >= 14
