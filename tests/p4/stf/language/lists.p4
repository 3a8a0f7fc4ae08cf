// Loops over lists, and slices that are told by their lowest bit and their width. (p4c 1.2.5 has both.)
#include <core.p4>
#include <v1model.p4>

header list_t {
    bit<16> given;
    bit<16> sum;
    bit<16> bits;
}

struct headers_t {
    list_t list;
}

struct metadata_t {}

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.list);
        transition accept;
    }
}

control TestVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action add_all() {
        // The list is made before the first round: changing `given` changes no item.
        for (bit<16> item in (list<bit<16>>) { 1, hdr.list.given, 0x100, hdr.list.given }) {
            if (item == 0x100) {
                continue;
            }
            hdr.list.sum = hdr.list.sum + item;
            hdr.list.given = 0;
        }
    }

    apply {
        standard.egress_spec = 1;
        hdr.list.bits[4+:8] = hdr.list.given[0+:8];
        add_all();
        for (bit<16> item in (list<bit<16>>) { 0x1000, 0x2000, 0x4000 }) {
            if (item == 0x4000) {
                break;
            }
            hdr.list.sum = hdr.list.sum + item;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control TestCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.list);
    }
}

V1Switch(TestParser(), TestVerify(), TestIngress(), TestEgress(), TestCompute(), TestDeparser()) main;
