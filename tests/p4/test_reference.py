"""The reference, which interprets the source: STF files, and random programs as p4c and BMv2 ran them.

It shares no code with our compiler and data plane, nor with p4c and BMv2.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from switch.reference import ReferenceSwitch
from switch.reference.stf import ReferenceTarget, run_on_reference
from switch.stf import parse_stf, read_stf
from tests.p4.recordings import PATHS
from tests.p4.reference_replay import read, replay
from tests.p4.test_random_programs import SEEDS, recording
from tests.p4.test_stf import NAMES, SCRIPTS, source

NOT_V1MODEL = {"count_min_sketch"}
"""Of an extern of gradbed's own switch, whose estimates no specification fixes."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_V1MODEL])
def test_stf_file(name: str) -> None:
    assert not run_on_reference(ReferenceSwitch(source(name)), read_stf(SCRIPTS[name])).failures


@pytest.mark.parametrize("seed", SEEDS)
def test_packets_leave_as_recorded(seed: str) -> None:
    recorded = recording(seed)
    switch = ReferenceSwitch(recorded["program"], ports=(0, 1))
    target = ReferenceTarget(switch)
    for statement in parse_stf("\n".join(recorded["commands"]), Path(f"{seed}.stf")).statements:
        target.apply(statement)
    received: dict[str, list[str]] = {}
    for port, frame in recorded["packets"]:
        for to, left in switch.process(port, bytes.fromhex(frame)):
            received.setdefault(str(to), []).append(left.hex())
    assert received == recorded["out"]


@pytest.mark.parametrize("name", PATHS)
def test_frames_and_state_as_bmv2_had_them(name: str, tmp_path: Path) -> None:
    """Our own programs, compiled by p4c; tests/p4/recorded/bmv2/README.md."""
    assert replay(read(PATHS[name]), tmp_path) == []
