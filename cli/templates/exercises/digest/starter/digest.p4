// digest: a learning switch whose tables a controller fills, by what the switch tells it.
#include <core.p4>
#include <v1model.p4>

const bit<16> FLOOD = 1;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

// What the controller is told: a host's address, and the port at which it is.
struct learn_t {
    bit<48> address;
    bit<9>  port;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action learn() {
        // TODO: tell the controller where the sender is.
    }
    // Hosts that the controller knows at this port already.
    table senders {
        key = {
            hdr.ethernet.src_addr: exact;
            // TODO: a host that has moved counts as one that is not known: its port is part of the key.
        }
        actions = { NoAction; learn; }
        // TODO: a packet whose sender is not known is reported to the controller.
        default_action = NoAction();
        size = 1024;
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action flood() {
        std.mcast_grp = FLOOD;
    }
    table hosts {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; flood; }
        // TODO: a packet for a host that is not known is flooded.
        default_action = forward(0);
        size = 1024;
    }

    apply {
        senders.apply();
        hosts.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        // TODO: nothing goes back by the port at which it came in.
    }
}

control MyComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
