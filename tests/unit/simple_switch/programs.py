"""A program with one of everything that the commands deal with, compiled."""

from __future__ import annotations

import functools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gradbed.switch.compiler import Compiled, compile_p4

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<32> address; bit<48> mac; bit<16> kind; bit<8> x; }
struct headers { data_t data; }
struct metadata { bit<16> choice; bit<2> colour; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) kinds;
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.kind) { kinds: odd; default: accept; }
    }
    state odd { transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) { apply {} }
control In(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets_and_bytes) route_hits;
    meter(4, MeterType.bytes) limits;
    register<bit<32>>(8) cells;
    action_selector(HashAlgorithm.crc16, 16, 16) paths;
    action forward(bit<9> port) { sm.egress_spec = port; }
    direct_meter<bit<2>>(MeterType.packets) route_limits;
    action limit(bit<9> port) { route_limits.read(meta.colour); sm.egress_spec = port; }
    action rewrite(bit<48> mac, bit<9> port) { hdr.data.mac = mac; sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    table routes {
        key = { hdr.data.address: lpm; }
        actions = { forward; rewrite; limit; drop; }
        default_action = drop();
        counters = route_hits;
        meters = route_limits;
    }
    table rules {
        key = { hdr.data.address: ternary; hdr.data.kind: range; hdr.data.x: optional; }
        actions = { forward; drop; NoAction; }
        default_action = NoAction();
    }
    table hosts {
        key = { hdr.data.mac: exact; hdr.data.address: selector; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        implementation = paths;
        support_timeout = true;
    }
    apply {
        seen.count((bit<32>)sm.ingress_port);
        limits.execute_meter((bit<32>)sm.ingress_port, meta.colour);
        bit<32> cell;
        cells.read(cell, 1);
        cells.write(1, cell + 1);
        routes.apply();
        rules.apply();
        hosts.apply();
    }
}
control Eg(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control Compute(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.data); } }
V1Switch(P(), Verify(), In(), Eg(), Compute(), D()) main;
"""


@functools.cache
def everything() -> Compiled:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "everything.p4"
        path.write_text(SOURCE)
        return compile_p4(path)


def program_json() -> dict[str, Any]:
    return everything().json
