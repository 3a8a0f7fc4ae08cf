// Clones from ingress and egress: what of the packet they carry, and which metadata they keep.
#include <core.p4>
#include <v1model.p4>

const bit<32> INGRESS_CLONE = 1;
const bit<32> EGRESS_CLONE = 2;

header label_t {
    bit<8> command; // 1: clone in ingress, 2: in egress
    bit<8> session;
    bit<8> kept;
    bit<8> lost;
    bit<8> instance;
}

struct headers_t {
    label_t label;
}

struct metadata_t {
    @field_list(7)
    bit<8> kept;
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
        meta.kept = 0xaa;
        meta.lost = 0xbb;
        if (hdr.label.command == 1) {
            // The clone is of the packet as it arrived: this change is not in it.
            hdr.label.command = 0x11;
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.label.session, 7);
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.label.kept = meta.kept;
        hdr.label.lost = meta.lost;
        hdr.label.instance = (bit<8>)standard.instance_type;
        if (hdr.label.command == 2 && standard.instance_type != EGRESS_CLONE) {
            // The clone is of the packet as egress leaves it: this change is in it.
            hdr.label.command = 0x22;
            clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.label.session, 7);
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), TestEgress(), NoUpdate(), EmitAll()) main;
