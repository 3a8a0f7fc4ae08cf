// mark_to_drop in actions that have the metadata as a parameter: they change a copy, which is copied back.
#include <core.p4>
#include <v1model.p4>

header way_t { bit<8> way; }
struct headers_t { way_t way; }
struct metadata_t { bit<16> group; }

action drop(inout standard_metadata_t std) { mark_to_drop(std); }
action drop_and_think_better(inout standard_metadata_t std) {
    mark_to_drop(std);
    std.egress_spec = 2;
}

parser P(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(h.way); transition accept; }
}
control C(inout headers_t h, inout metadata_t meta) { apply { } }
control Inner(inout standard_metadata_t std) { apply { mark_to_drop(std); } }
control I(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    Inner() inner;
    standard_metadata_t other;
    table ways {
        key = { h.way.way: exact; }
        actions = { drop(std); drop_and_think_better(std); NoAction; }
        const entries = { 1: drop(std); 2: drop_and_think_better(std); }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 1;
        ways.apply();
        if (h.way.way == 3) { drop(std); }
        if (h.way.way == 4) { drop_and_think_better(std); }
        if (h.way.way == 5) { inner.apply(std); }
        if (h.way.way == 6) { other = std; mark_to_drop(other); }
        if (h.way.way == 7) { other = std; mark_to_drop(other); std = other; }
    }
}
control E(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.way); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
