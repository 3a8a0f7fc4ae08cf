"""A program for tests of the runner, compiled and built once."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4

SOURCE = """
#include <core.p4>
#include <v1model.p4>

header head_t { bit<16> a; bit<4> b; bit<4> c; bit<8> result; }
struct headers_t { head_t head; head_t[2] more; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) extended;
    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.a) { extended: more; default: accept; }
    }
    state more { packet.extract(hdr.more.next); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(4) cells;
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets) hits;
    meter(2, MeterType.packets) rate;

    action set(bit<8> value, bit<9> port) { hdr.head.result = value; standard.egress_spec = port; }
    action group(bit<16> number) { standard.mcast_grp = number; }
    action drop() { mark_to_drop(standard); }
    action round() { hdr.head.result = 0xff; }
    action copy(bit<9> port) { clone(CloneType.I2E, 7); standard.egress_spec = port; }

    table wild { key = { hdr.head.a: ternary; } actions = { set; group; drop; round; copy; NoAction; }
        default_action = NoAction(); counters = hits; }
    table prefixes { key = { hdr.head.a: lpm; } actions = { set; NoAction; } default_action = NoAction(); }
    table pairs { key = { hdr.head.a: exact; hdr.head.b: range; } actions = { set; NoAction; }
        default_action = NoAction(); }
    table members { key = { hdr.head.a: exact; } actions = { set; NoAction; } default_action = NoAction();
        implementation = action_profile(8); }
    table stacked { key = { hdr.more[0].a: ternary; hdr.more[1].isValid(): exact; } actions = { set; NoAction; }
        default_action = NoAction(); }
    table fixed { key = { hdr.head.a: exact; } actions = { NoAction; } const default_action = NoAction();
        const entries = { 1: NoAction(); } }

    apply {
        bit<32> before;
        cells.read(before, 0);
        cells.write(0, before + 1);
        seen.count((bit<32>)hdr.head.b);
        bit<8> colour;
        rate.execute_meter(0, colour);
        wild.apply();
        prefixes.apply();
        pairs.apply();
        members.apply();
        stacked.apply();
        fixed.apply();
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { if (hdr.head.result == 0xff) { recirculate_preserving_field_list(0); } }
}
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), U(), D()) main;
"""


@functools.cache
def program() -> BuiltProgram:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "program.p4"
        source.write_text(SOURCE)
        return build_program(compile_p4(source).json)
