// Groups of an action selector: the hash of the selector's fields chooses a member.
#include <core.p4>
#include <v1model.p4>

header message_t {
    bit<8> key;
    bit<8> flow;
    bit<8> chosen;
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
    action set(bit<8> value) {
        hdr.message.chosen = value;
    }

    action add_to_flow(bit<8> value) {
        hdr.message.chosen = hdr.message.flow + value;
    }

    table balanced {
        key = {
            hdr.message.key: exact;
            hdr.message.flow: selector;
        }
        actions = { set; add_to_flow; }
        @name("balancer") implementation = action_selector(HashAlgorithm.xor16, 16, 16);
    }

    apply {
        standard.egress_spec = 1;
        balanced.apply();
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
