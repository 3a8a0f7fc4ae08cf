// Ones' complement checksums: verified on arrival, updated on leaving, with and without the payload.
#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16> a;
    bit<16> b;
    bit<16> checksum;
    bit<8>  wrong;
    bit<8>  change;
}

header cover_t {
    bit<16> checksum;
}

struct headers_t {
    data_t  data;
    cover_t cover;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.cover);
        transition accept;
    }
}

control TestVerification(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(true, { hdr.data.a, hdr.data.b }, hdr.data.checksum, HashAlgorithm.csum16);
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.wrong = (bit<8>)standard.checksum_error;
        hdr.data.a = hdr.data.a + (bit<16>)hdr.data.change;
    }
}

control TestUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.data.change != 0, { hdr.data.a, hdr.data.b }, hdr.data.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.data.a }, hdr.cover.checksum, HashAlgorithm.csum16);
    }
}

V1Switch(TestParser(), TestVerification(), TestIngress(), NoEgress(), TestUpdate(), EmitAll()) main;
