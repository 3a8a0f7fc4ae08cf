// What ingress and egress read in instance_type: of a packet that came back, egress reads NORMAL, as of any unicast
// packet that is no copy.
#include <core.p4>
#include <v1model.p4>

header types_t {
    bit<8> way; // 1 resubmitted, 2 recirculated, 3 to a multicast group
    bit<8> ingress;
    bit<8> egress;
}

struct headers_t {
    types_t types;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.types);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.types.ingress = (bit<8>)standard.instance_type;
        if (hdr.types.way == 1 && standard.instance_type == 0) {
            resubmit_preserving_field_list(1);
        }
        if (hdr.types.way == 3) {
            standard.mcast_grp = 1;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.types.egress = (bit<8>)standard.instance_type;
        if (hdr.types.way == 2) {
            hdr.types.way = 0;
            recirculate_preserving_field_list(1);
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), TestEgress(), NoUpdate(), EmitAll()) main;
