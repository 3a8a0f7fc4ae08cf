// Headers are equal if both are not valid, or both are and their fields are the same; also with a varbit.
#include <core.p4>
#include <v1model.p4>

header which_t { bit<8> parsed; bit<8> equal; bit<8> unequal; }
header plain_t { bit<8> a; bit<8> b; }
header variable_t { bit<8> a; varbit<32> b; }
struct headers_t { which_t which; plain_t one; plain_t two; variable_t three; variable_t four; }
struct metadata_t { }

parser P(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(h.which);
        transition select(h.which.parsed) { 0: accept; 1: first; 2: second; default: both; }
    }
    state first { packet.extract(h.one); packet.extract(h.three, 8); transition accept; }
    state second { packet.extract(h.two); packet.extract(h.four, 8); transition accept; }
    state both {
        packet.extract(h.one);
        packet.extract(h.three, 8);
        packet.extract(h.two);
        packet.extract(h.four, 8);
        transition accept;
    }
}
control C(inout headers_t h, inout metadata_t meta) { apply { } }
control I(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (h.one == h.two) { h.which.equal = h.which.equal | 1; }
        if (h.one != h.two) { h.which.unequal = h.which.unequal | 1; }
        if (h.three == h.four) { h.which.equal = h.which.equal | 2; }
        if (h.three != h.four) { h.which.unequal = h.which.unequal | 2; }
    }
}
control E(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.which); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
