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
        port_of.write((bit<32>) hdr.ethernet.src_addr[15:0], std.ingress_port);

        bit<9> port;
        port_of.read(port, (bit<32>) hdr.ethernet.dst_addr[15:0]);

        if (port == NO_PORT) {
            std.mcast_grp = FLOOD;
        } else {
            std.egress_spec = port;
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
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
