// Truncation: the smallest length counts, whatever the order of the calls.
#include <core.p4>
#include <v1model.p4>

header lengths_t { bit<32> first; bit<32> second; bit<32> egress; }
struct headers_t { lengths_t lengths; }
struct metadata_t { }

parser P(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(h.lengths); transition accept; }
}
control V(inout headers_t h, inout metadata_t meta) { apply { } }
control I(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        truncate(h.lengths.first);
        if (h.lengths.second != 0) { truncate(h.lengths.second); }
    }
}
control E(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    apply { if (h.lengths.egress != 0) { truncate(h.lengths.egress); } }
}
control C(inout headers_t h, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.lengths); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
