// A packet goes round until its count is used up; each round sees what the deparser of the last one wrote.
#include <core.p4>
#include <v1model.p4>

header round_t {
    bit<8> left;
    bit<8> rounds;
    bit<8> instance;
    bit<8> kept;
}

struct headers_t {
    round_t round;
}

struct metadata_t {
    @field_list(1)
    bit<8> rounds;
    bit<8> lost;
}

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.round);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.round.rounds = meta.rounds;
        hdr.round.kept = meta.lost;
        hdr.round.instance = (bit<8>)standard.instance_type;
        meta.rounds = meta.rounds + 1;
        meta.lost = 0xff;
        standard.egress_spec = 2;
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.round.left > 0) {
            hdr.round.left = hdr.round.left - 1;
            recirculate_preserving_field_list(1);
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), TestEgress(), NoUpdate(), EmitAll()) main;
