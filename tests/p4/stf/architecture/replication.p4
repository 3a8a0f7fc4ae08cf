// One packet to many ports, each copy with the instance of its replica; egress keeps it from where it came.
#include <core.p4>
#include <v1model.p4>

header label_t {
    bit<16> group;
    bit<16> instance;
    bit<8>  port;
    bit<8>  type;
}

struct headers_t {
    label_t label;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.label);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.mcast_grp = hdr.label.group;
        if (hdr.label.group == 0) {
            mark_to_drop(standard);
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.label.instance = standard.egress_rid;
        hdr.label.port = (bit<8>)standard.egress_port;
        hdr.label.type = (bit<8>)standard.instance_type;
        if (standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), TestEgress(), NoUpdate(), EmitAll()) main;
