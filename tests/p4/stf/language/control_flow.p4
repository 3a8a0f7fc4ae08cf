// Hit and miss, the action that ran, exit and return, functions with inout parameters, nested controls.
#include <core.p4>
#include <v1model.p4>

header trace_t {
    bit<8> key;
    bit<8> trace;
}

struct headers_t {
    trace_t trace;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.trace);
        transition accept;
    }
}

bool mark(inout bit<8> trace, in bit<8> bits) {
    trace = trace | bits;
    return bits > 0;
}

control Mark(inout bit<8> trace)(bit<8> bits) {
    apply {
        trace = trace | bits;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Mark(0x01) hit;
    Mark(0x02) miss;

    action left() { }
    action right() { }
    action leave() {
        exit;
    }
    action stay(in bit<8> key) {
        if (key == 0) {
            return;
        }
        hdr.trace.trace = hdr.trace.trace | 0x80;
    }

    table known {
        key = { hdr.trace.key: exact; }
        actions = { NoAction; }
        const entries = {
            1: NoAction();
            2: NoAction();
        }
    }
    table directions {
        key = { hdr.trace.key: exact; }
        actions = { left; right; leave; NoAction; }
        default_action = NoAction();
        const entries = {
            1: left();
            2: right();
            3: leave();
        }
    }

    apply {
        standard.egress_spec = 1;
        if (known.apply().hit) {
            hit.apply(hdr.trace.trace);
        } else {
            miss.apply(hdr.trace.trace);
        }
        switch (directions.apply().action_run) {
            left: { mark(hdr.trace.trace, 0x04); }
            right: { mark(hdr.trace.trace, 0x08); }
            default: { mark(hdr.trace.trace, 0x10); }
        }
        // The second operand is evaluated only if the first is true.
        if (hdr.trace.key == 4 && mark(hdr.trace.trace, 0x20)) {
            return;
        }
        stay(hdr.trace.key);
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
