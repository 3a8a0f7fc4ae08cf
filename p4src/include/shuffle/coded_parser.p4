// Headers, metadata, parser and deparser of the multicast program.
#ifndef GRADBED_CODED_PARSER_P4
#define GRADBED_CODED_PARSER_P4

#include "../ipv4.p4"
#include "coded.p4"

error { Ipv4Options }

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    coded_t coded;
}

struct metadata_t { }

parser CodedParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
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

    // A packet on the port with another version is plain UDP to us.
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            CODED_PORT: check_version;
            default: accept;
        }
    }
    state check_version {
        transition select(packet.lookahead<bit<8>>()) {
            CODED_VERSION: parse_coded;
            default: accept;
        }
    }
    state parse_coded {
        packet.extract(hdr.coded);
        transition accept;
    }
}

control CodedDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.coded);
    }
}

control CodedVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control CodedCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

#endif
