// Headers, metadata, parser and deparser of routers for training traffic: RoCEv2 is UDP to them.
#ifndef GRADBED_ROUTER_PARSER_P4
#define GRADBED_ROUTER_PARSER_P4

#include "../ipv4.p4"

error { Ipv4Options }

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

// Of the equally short paths to a destination: which set of next hops, and which of them.
struct metadata_t {
    bit<16> next_hop_set;
    bit<16> next_hop;
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    // IPv4 options would have to enter the checksum; nothing in this network sends them.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl == 5, error.Ipv4Options);
        transition select(hdr.ipv4.protocol, hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 0): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control RouterVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

#endif
