// A parser that asks a set of values which the controller fills.
#include <core.p4>
#include <v1model.p4>

header type_t {
    bit<16> type;
}

header tail_t {
    bit<8> value;
}

struct headers_t {
    type_t type;
    tail_t tail;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) with_tail;

    state start {
        packet.extract(hdr.type);
        transition select(hdr.type.type) {
            with_tail: tail;
            default: accept;
        }
    }
    state tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.tail.isValid()) {
            hdr.tail.value = 0xff;
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
