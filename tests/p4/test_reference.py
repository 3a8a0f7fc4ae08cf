"""The reference, which interprets the source: STF files, and random programs as p4c and BMv2 ran them.

It shares no code with our compiler and data plane, nor with p4c and BMv2.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.switch.reference import ReferenceSwitch
from gradbed.switch.reference.stf import ReferenceTarget, run_on_reference
from gradbed.switch.stf import parse_stf, read_stf
from tests.p4.recordings import PATHS
from tests.p4.reference_replay import read, replay
from tests.p4.test_random_programs import SEEDS, recording
from tests.p4.test_stf import NAMES, SCRIPTS, source

NOT_V1MODEL = {"count_min_sketch"}
"""Of an extern of gradbed's own switch, whose estimates no specification fixes."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_V1MODEL])
def test_stf_file(name: str) -> None:
    assert not run_on_reference(ReferenceSwitch(source(name)), read_stf(SCRIPTS[name])).failures


@pytest.mark.commit_cases(7)
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


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("name", PATHS)
def test_frames_and_state_as_bmv2_had_them(name: str, tmp_path: Path) -> None:
    """Our own programs, compiled by p4c; tests/p4/recorded/bmv2/README.md."""
    assert replay(read(PATHS[name]), tmp_path) == []


# ---- What p4c's corpus found; it is not in this repository ----

BLOCKS = """
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<8> found; }
struct inner_t { bit<8> b; }
struct key_t { bit<8> a; inner_t inner; }
struct learned_t { bit<8> a; error what; }
struct headers_t { h_t h; }
struct meta_t { bit<8> found; }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t std) {
    value_set<key_t>(4) known;
    state start {
        p.extract(h.h);
        transition select(h.h.a, h.h.b) { known: found; (3, 3): found; default: accept; }
    }
    state found { m.found = 1; transition accept; }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t std) {
    apply { std.egress_spec = 1; h.h.found = m.found; digest<learned_t>(1, { h.h.a, std.parser_error }); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t std) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.h); } }
V1Switch(dep = D(), ig = I(), p = P(), vr = C(), eg = E(), ck = C()) main;
"""


def test_a_value_set_of_several_fields_a_digest_of_an_error_and_blocks_by_name() -> None:
    switch = ReferenceSwitch(BLOCKS)
    switch.set_value_set("known", [[1, 2], [(0x80, 0xF0), 5]])
    found = {
        frame: switch.process(0, bytes.fromhex(frame))[0][1][2] for frame in ("010200", "010300", "870500", "030300")
    }
    assert found == {"010200": 1, "010300": 0, "870500": 1, "030300": 1}
    assert switch.digests[0] == (1, (1, "NoError"))
