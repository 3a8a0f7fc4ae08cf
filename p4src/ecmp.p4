// An IPv4 router that spreads flows over equally short paths (ECMP): a hash of addresses and ports chooses one, so that
// packets of a flow stay in order. How many there are to choose from, its entries say, and a seed of the switch, without
// which all switches would choose alike.
#include <core.p4>
#include <v1model.p4>

#include "include/ipv4.p4"
#include "include/mix_hash.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t {
    bit<16> group;
    bit<16> choice;
}

parser EcmpParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.fragment_offset) {
            (5, PROTOCOL_UDP, 0): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control EcmpVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control EcmpIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> src_port = 0;
    bit<16> dst_port = 0;
    bit<16> count = 0;
    bit<32> hash_seed = 0;
    MixHash() mix_hash;

    action drop() {
        mark_to_drop(std);
    }
    action choose(bit<16> group, bit<16> choices, bit<32> seed) {
        meta.group = group;
        count = choices;
        hash_seed = seed;
    }
    action forward(port_t port, mac_addr_t dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table groups {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { choose; drop; }
        const default_action = drop();
        size = 4096;
    }
    table paths {
        key = { meta.group: exact; meta.choice: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 16384;
    }

    apply {
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid() || hdr.ipv4.ihl != 5
            || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            if (hdr.udp.isValid()) {
                src_port = hdr.udp.src_port;
                dst_port = hdr.udp.dst_port;
            }
            if (groups.apply().hit) {
                bit<32> flow_hash;
                hash(flow_hash, HashAlgorithm.crc32, 32w0,
                     { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, src_port, dst_port }, 64w0x100000000);
                mix_hash.apply(hash_seed, flow_hash);
                meta.choice = (bit<16>)(((bit<48>)flow_hash * (bit<48>)count) >> 32);
                paths.apply();
            }
        }
    }
}

control EcmpEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control EcmpComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control EcmpDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(EcmpParser(), EcmpVerifyChecksum(), EcmpIngress(), EcmpEgress(), EcmpComputeChecksum(), EcmpDeparser()) main;
