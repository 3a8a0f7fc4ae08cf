"""Programs with hundreds of lanes: loops instead of unrolled text, and the same results."""

from __future__ import annotations

import random
import struct

import pytest

from gradbed.common.c_library import shared_library
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.codegen.program import generate
from gradbed.switch.runtime.library import RUNTIME_DIR
from tests.unit.codegen.bare_switch import BareSwitch
from tests.unit.codegen.lanes import SLOTS, lane_program

LANES = 256


@pytest.mark.parametrize("grouped", [True, False])
def test_lanes_become_loops(grouped: bool) -> None:
    text = generate(load_program(lane_program(LANES, grouped)))
    lines = text.splitlines()
    assert sum(line.startswith("for (int lane") for line in lines) == (6 if grouped else 3)
    # 256 registers take a line each in the layout; no statement appears once per lane.
    assert len(lines) < LANES + 150


def test_unrolled_and_rolled_agree() -> None:
    json = lane_program(40, grouped=False)
    model = load_program(json)
    unrolled = shared_library(
        "unrolled", (), generate(model, roll=False), include_dirs=(RUNTIME_DIR,), optimise="-O1"
    )
    switches = [BareSwitch(build_program(json)), BareSwitch(BuiltProgram(json, unrolled, model))]
    rng = random.Random(1)
    for _ in range(50):
        frame = struct.pack(
            ">HIH40i", rng.randrange(SLOTS + 2), 0, 0, *(rng.randrange(-(2**31), 2**31) for _ in range(40))
        )
        frame += rng.randbytes(rng.randrange(20))
        rolled, plain = (switch.through(frame).frame for switch in switches)
        assert rolled == plain
    for i in range(40):
        assert switches[0].state.registers.read_all(f"slot_{i}") == switches[1].state.registers.read_all(f"slot_{i}")


def test_sums_are_exact_and_wrap() -> None:
    switch = BareSwitch(build_program(lane_program(LANES)))
    rng = random.Random(2)
    sums = [0] * LANES
    for _ in range(20):
        lanes = [rng.randrange(-(2**31), 2**31) for _ in range(LANES)]
        sums = [(a + b + 2**31) % 2**32 - 2**31 for a, b in zip(sums, lanes, strict=True)]
        out = switch.through(struct.pack(f">HIH{LANES}i", 3, 7, 9, *lanes) + b"tail").frame
        assert out == struct.pack(f">HIH{LANES}i", 3, 7, 9, *sums) + b"tail"
    assert switch.state.registers.read("slot_17", 3) == sums[17] % 2**32


def test_a_slot_out_of_range_reads_zero_and_writes_nothing() -> None:
    switch = BareSwitch(build_program(lane_program(LANES)))
    lanes = list(range(LANES))
    for _ in range(2):
        out = switch.through(struct.pack(f">HIH{LANES}i", SLOTS, 0, 0, *lanes)).frame
        assert list(struct.unpack(f">{LANES}i", out[8:])) == lanes
    assert all(not any(switch.state.registers.read_all(f"slot_{i}")) for i in (0, 1, LANES - 1))
