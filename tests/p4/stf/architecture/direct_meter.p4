// Direct meters: an entry's meter marks each packet that hits it, whether the action reads the colour or not.
#include <core.p4>
#include <v1model.p4>

header message_t {
    bit<8> key;
    bit<8> colour;
    bit<8> other;
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
    direct_meter<bit<8>>(MeterType.packets) marker;

    action read() {
        marker.read(hdr.message.colour);
    }

    action read_elsewhere() {
        marker.read(hdr.message.other);
    }

    action read_twice() {
        marker.read(hdr.message.colour);
        marker.read(hdr.message.other);
    }

    action leave() { }

    table entries_that_mark {
        key = { hdr.message.key: exact; }
        actions = { read; read_elsewhere; read_twice; leave; }
        default_action = leave();
        meters = marker;
    }

    apply {
        standard.egress_spec = 1;
        entries_that_mark.apply();
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
