// Headers, metadata, parser and deparser of the compression program.
#ifndef GRADBED_PART_PARSER_P4
#define GRADBED_PART_PARSER_P4

#include "part.p4"

error { Ipv4Options }

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    part_t part;
}

struct metadata_t { }

parser PartParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
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
        transition select(hdr.udp.dst_port) {
            PART_PORT: check_version;
            default: accept;
        }
    }
    state check_version {
        transition select(packet.lookahead<bit<8>>()) {
            PART_VERSION: parse_part;
            default: accept;
        }
    }
    state parse_part {
        packet.extract(hdr.part);
        transition accept;
    }
}

control PartVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control PartCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control PartDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.part);
    }
}

#endif
