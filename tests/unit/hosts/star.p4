// Sends every frame to the host at port N: N is the last byte of the IPv4 destination in frames to a gateway
// (MAC 02:00:00:00:01:...), and of the MAC destination in all others.
#include <core.p4>
#include <v1model.p4>

struct headers_t {
}

struct metadata_t {
    bit<272> head; // Ethernet and IPv4
}

parser Lookahead(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        meta.head = packet.lookahead<bit<272>>();
        transition accept;
    }
}

control NoVerification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ToHost(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = (bit<9>)meta.head[231:224];
        if (meta.head[239:232] == 1) {
            std.egress_spec = (bit<9>)meta.head[7:0];
        }
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

V1Switch(Lookahead(), NoVerification(), ToHost(), NoEgress(), NoComputation(), NoDeparser()) main;
