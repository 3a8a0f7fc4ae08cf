// A hash over an action's argument: the same nine bytes as in hashes.p4, from the table's entry.
#include <core.p4>
#include <v1model.p4>

header message_t {
    bit<8>  key;
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
    action summed(bit<72> text) {
        hash(hdr.message.value, HashAlgorithm.crc32, 32w0, { text }, 64w0x100000000);
    }

    table texts {
        key = { hdr.message.key: exact; }
        actions = { summed; NoAction; }
        default_action = NoAction();
    }

    apply {
        standard.egress_spec = 1;
        texts.apply();
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
