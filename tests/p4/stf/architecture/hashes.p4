// Hash algorithms over the same nine bytes, those of the CRC catalogue's check values ("123456789").
#include <core.p4>
#include <v1model.p4>

header message_t {
    bit<72> text;
    bit<8>  algorithm;
    bit<32> value;
}

struct headers_t {
    message_t message;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.message);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        switch (hdr.message.algorithm) {
            1: { hash(hdr.message.value, HashAlgorithm.crc32, 32w0, { hdr.message.text }, 64w0x100000000); }
            2: { hash(hdr.message.value, HashAlgorithm.crc16, 32w0, { hdr.message.text }, 64w0x10000); }
            3: { hash(hdr.message.value, HashAlgorithm.csum16, 32w0, { hdr.message.text }, 64w0x10000); }
            4: { hash(hdr.message.value, HashAlgorithm.identity, 32w0, { hdr.message.text }, 64w0x100000000); }
            5: { hash(hdr.message.value, HashAlgorithm.crc32, 32w1000, { hdr.message.text }, 64w10); }
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
