// learn: a switch that learns by which port each host is reached, and floods what it does not know yet.
#include <core.p4>
#include <v1model.p4>

const bit<16> FLOOD = 1;
const bit<9> NO_PORT = 0;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

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
    // The port of each host; its index is the last 16 bits of the host's MAC address.
    register<bit<9>>(65536) port_of;

    apply {
        // TODO: learn: the host that sent this packet is reached by the port at which it came in.

        // TODO: read the port of the host that the packet is for.
        bit<9> port = NO_PORT;

        if (port == NO_PORT) {
            std.mcast_grp = FLOOD;
        } else {
            std.egress_spec = port;
        }
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
