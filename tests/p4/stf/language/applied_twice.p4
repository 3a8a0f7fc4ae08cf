// One table that is asked for a hit in one place and for the action that ran in another.
#include <core.p4>
#include <v1model.p4>

header message_t {
    bit<8> key;
    bit<8> asked;  // 1 for a hit, 2 for a miss; and 16 for set, 32 for NoAction, 48 for another
    bit<8> value;
    bit<8> member; // the same of a table with an action profile
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
        hdr.message.value = hdr.message.value + value;
    }

    action clear() {
        hdr.message.value = 0;
    }

    table simple {
        key = { hdr.message.key: exact; }
        actions = { set; clear; NoAction; }
        default_action = clear();
    }

    table indirect {
        key = { hdr.message.key: exact; }
        actions = { set; clear; NoAction; }
        default_action = NoAction();
        @name("members") implementation = action_profile(8);
    }

    apply {
        standard.egress_spec = 1;
        if (simple.apply().hit) {
            hdr.message.asked = 1;
        } else {
            hdr.message.asked = 2;
        }
        switch (simple.apply().action_run) {
            set: { hdr.message.asked = hdr.message.asked + 16; }
            NoAction: { hdr.message.asked = hdr.message.asked + 32; }
            default: { hdr.message.asked = hdr.message.asked + 48; }
        }
        switch (indirect.apply().action_run) {
            set: { hdr.message.member = 16; }
            NoAction: { hdr.message.member = 32; }
            default: { hdr.message.member = 48; }
        }
        if (indirect.apply().miss) {
            hdr.message.member = hdr.message.member + 2;
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
