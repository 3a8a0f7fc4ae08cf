// Headers and parser of hybrid switches: IPv4, with a wavelength (vlan.p4) where it comes by light.
#ifndef GRADBED_HYBRID_PARSER_P4
#define GRADBED_HYBRID_PARSER_P4

#include "../ipv4.p4"
#include "../vlan.p4"

error { Ipv4Options }

struct headers_t {
    ethernet_t ethernet;
    vlan_t wavelength;
    ipv4_t ipv4;
    udp_t udp;
}

// Index of the register `waiting` (load.p4) of where the packet goes: egress needs it.
struct metadata_t {
    bit<32> channel;
    bit<32> flow_hash;
}

parser HybridParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_VLAN: parse_wavelength;
            default: accept;
        }
    }
    state parse_wavelength {
        packet.extract(hdr.wavelength);
        transition select(hdr.wavelength.ether_type) {
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

control HybridDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.wavelength);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

control HybridVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control HybridCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

#endif
