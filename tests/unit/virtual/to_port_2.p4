// Sends every frame to port 2, as it is.
#include <core.p4>
#include <v1model.p4>

struct headers_t {
}

struct metadata_t {
}

parser NoParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control NoVerification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ToPort2(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control NoComputation(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NoDeparser(packet_out packet, in headers_t hdr) {
    apply { }
}

V1Switch(NoParser(), NoVerification(), ToPort2(), NoEgress(), NoComputation(), NoDeparser()) main;
