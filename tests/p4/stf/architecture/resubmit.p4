// A resubmitted packet is parsed again as it arrived: changes to headers are gone, listed metadata is kept.
#include <core.p4>
#include <v1model.p4>

header label_t {
    bit<8> value;
    bit<8> kept;
    bit<8> lost;
    bit<8> instance;
}

struct headers_t {
    label_t label;
}

struct metadata_t {
    @field_list(1, 2)
    bit<8> kept;
    @field_list(2)
    bit<8> lost;
}

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.label);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.label.kept = meta.kept;
        hdr.label.lost = meta.lost;
        hdr.label.instance = (bit<8>)standard.instance_type;
        if (meta.kept == 0) {
            meta.kept = hdr.label.value + 1;
            meta.lost = 0xff;
            hdr.label.value = 0xee;
            resubmit_preserving_field_list(1);
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
