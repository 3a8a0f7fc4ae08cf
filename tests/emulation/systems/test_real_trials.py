"""Trials of systems on the real clock: the programs, plans, agents and checks of the virtual one, in processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import rows
from tests.emulation.real_trial import real_trial

pytestmark = [pytest.mark.thorough, pytest.mark.root]

Row = dict[str, str]
HYBRID = "--topology optical-electrical:2 --packets 560 --scale 0.05 --load 0.3"
# Both of slow: the same with other crossbars, and with computations of another system (test_training.py).
CASES: list[tuple[str, str, Callable[[Row], bool]]] = [
    ("interconnect", HYBRID, lambda trial: trial["loss"] == "0.0"),
    # Crossbars of Open vSwitch under the os-ken application.
    ("interconnect", f"{HYBRID} --optical openflow --channels uplink", lambda trial: trial["loss"] == "0.0"),
    # The run fails where a link did not carry what the schedule says, or a sample is not the original one.
    (
        "shuffle",
        "--topology bcube:2,1 --samples 24 --storage 0.5 --scheduler coded-largest --timeout-us 200000",
        lambda trial: float(trial["counted_hops"]) == float(trial["hops"]) > 0,
    ),
    (
        "ndn",
        "--workload synthetic --topology leaf-spine:2,1,2 --peers 4 --rounds 2 --scale 0.1",
        lambda trial: float(trial["expected_transmissions"]) == 4 * 6,
    ),
    # Computations take as long as the run says.
    (
        "ndn",
        "--topology star:3 --peers 3 --rounds 3 --compute-us 10000 --slow-peers 1 --slowness 4 --scale 0.2",
        lambda trial: float(trial["total_time_s"]) > 3 * 4 * 0.01,
    ),
    (
        "compression",
        "--topology star:4 --workers 2 --rounds 3 --hidden-units 16 --scale 0.1"
        " --background-load 0.3 --background-ms 20",
        lambda trial: 0 < float(trial["accuracy"]) <= 1 and float(trial["server_bytes"]) > 0,
    ),
]


SLOW = {HYBRID, CASES[4][1]}


@pytest.mark.parametrize(
    ("system", "options", "is_right"),
    [
        pytest.param(*case, id=" ".join(case[:2]), marks=[pytest.mark.nightly] if case[1] in SLOW else [])
        for case in CASES
    ],
)
def test_one_trial(system: str, options: str, is_right: Callable[[Row], bool], tmp_path: Path) -> None:
    if "openflow" in options and shutil.which("ovs-vswitchd") is None:
        pytest.skip("needs Open vSwitch")
    trial = real_trial(system, options, tmp_path)
    assert trial["failures"] == "" and is_right(trial), trial
    if system == "interconnect":
        pairs = rows(tmp_path / "interconnect" / "latest" / "pairs.csv")
        assert sum(int(row["received_packets"]) for row in pairs) == 560
