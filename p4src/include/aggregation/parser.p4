// Headers, metadata and parser of the aggregation program.
#ifndef GRADBED_PARSER_P4
#define GRADBED_PARSER_P4

#include "../ipv4.p4"
#include "gradient.p4"

error { Ipv4Options }

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    gradient_t gradient;
    lanes_t lanes;
}

struct metadata_t { }

parser GradientParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
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

    // A packet on the port with another number of lanes or another version is plain UDP to us.
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port, hdr.udp.length) {
            (GRADIENT_PORT, GRADIENT_UDP_LENGTH): check_gradient;
            (GRADIENT_PORT, NEGATIVE_UDP_LENGTH): check_negative;
            default: accept;
        }
    }

    // Version and flags.
    state check_gradient {
        transition select(packet.lookahead<bit<16>>()) {
            GRADIENT_VERSION ++ 8w0x00 &&& 0xFF08: parse_gradient;
            default: accept;
        }
    }
    state check_negative {
        transition select(packet.lookahead<bit<16>>()) {
            GRADIENT_VERSION ++ 8w0x09 &&& 0xFF09: parse_negative;
            default: accept;
        }
    }

    state parse_gradient {
        packet.extract(hdr.gradient);
        packet.extract(hdr.lanes);
        transition accept;
    }
    state parse_negative {
        packet.extract(hdr.gradient);
        transition accept;
    }
}

control GradientDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.gradient);
        packet.emit(hdr.lanes);
    }
}

control Ipv4Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control Ipv4Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

#endif
