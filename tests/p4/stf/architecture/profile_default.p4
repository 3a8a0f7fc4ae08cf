// Default actions of tables with an action profile: they run on a miss, and action_run is theirs.
#include <core.p4>
#include <v1model.p4>

header message_t {
    bit<8> key;
    bit<8> run;    // which case of the switch
    bit<8> value;
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
        hdr.message.value = value;
    }

    table nothing {
        key = { hdr.message.key: exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
        @name("nothing_profile") implementation = action_profile(8);
    }

    table something {
        key = { hdr.message.key: exact; }
        actions = { set; NoAction; }
        default_action = set(0x77);
        @name("something_profile") implementation = action_profile(8);
    }

    apply {
        standard.egress_spec = 1;
        if (hdr.message.run == 0) {
            switch (nothing.apply().action_run) {
                NoAction: { hdr.message.run = 1; }
                set: { hdr.message.run = 2; }
            }
        } else {
            switch (something.apply().action_run) {
                NoAction: { hdr.message.run = 3; }
                set: { hdr.message.run = 4; }
            }
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
