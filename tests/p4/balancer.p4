// An action selector over the source address.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser BalancerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control BalancerVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control BalancerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 32w64, 32w14) balancer;

    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    table balanced {
        key = {
            hdr.ethernet.dst_addr: exact;
            hdr.ethernet.src_addr: selector;
            hdr.ethernet.ether_type: selector;
        }
        actions = { forward; drop; NoAction; }
        implementation = balancer;
        size = 16;
    }

    apply {
        if (!balanced.apply().hit) {
            drop();
        }
    }
}

control BalancerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

control BalancerComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control BalancerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(
    BalancerParser(),
    BalancerVerifyChecksum(),
    BalancerIngress(),
    BalancerEgress(),
    BalancerComputeChecksum(),
    BalancerDeparser()
) main;
