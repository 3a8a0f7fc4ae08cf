// bitstring: multicast without groups in the network: the packet itself says for whom it is.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_BITS = 0x88b7;
// The multicast group of all ports.
const bit<16> EVERYWHERE = 1;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

// receivers: bit n - 1 is set if host n is to get the packet.
header bits_t {
    bit<16> receivers;
}

struct headers_t {
    ethernet_t ethernet;
    bits_t     bits;
}

struct metadata_t {
    // The hosts that are reached by the port of this copy.
    bit<16> reached;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_BITS: parse_bits;
            default: accept;
        }
    }
    state parse_bits {
        packet.extract(hdr.bits);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.bits.isValid()) {
            std.mcast_grp = EVERYWHERE;
        } else {
            mark_to_drop(std);
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action reaches(bit<16> hosts) {
        meta.reached = hosts;
    }
    // The hosts behind each port.
    table ports {
        key = { std.egress_port: exact; }
        actions = { reaches; }
        default_action = reaches(0);
    }

    apply {
        ports.apply();
        hdr.bits.receivers = hdr.bits.receivers & meta.reached;
        if (hdr.bits.receivers == 0 || std.egress_port == std.ingress_port) {
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
        packet.emit(hdr.bits);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
