// stateful: who is inside may talk to anyone; from outside only answers come in.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
// Bits of each of the two halves of the Bloom filter, a power of two.
const bit<32> BITS = 4096;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  dscp_ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> header_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

// The first four bytes of UDP and TCP alike.
header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: parse_ports;
            17: parse_ports;
            default: accept;
        }
    }
    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // A Bloom filter of the flows that were opened from inside: two bits for each, by two hashes.
    register<bit<1>>(BITS) first_bits;
    register<bit<1>>(BITS) second_bits;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port, bit<48> dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }
    // The ports at which the inside begins: what comes from there hits.
    table inside {
        key = { std.ingress_port: exact; }
        actions = { NoAction; }
        default_action = NoAction();
    }

    // CRCs are linear: what comes of values that follow each other follows a pattern, too. This is the end of
    // MurmurHash3 (A. Appleby), which is not linear. Each seed makes another hash of it.
    action mix(in bit<32> seed, inout bit<32> value) {
        value = value ^ seed;
        value = (value ^ (value >> 16)) * 0x85EBCA6B;
        value = (value ^ (value >> 13)) * 0xC2B2AE35;
        value = value ^ (value >> 16);
    }

    // Where in the filter the flow has its bits.
    action places_of(in bit<32> near, in bit<32> far, in bit<16> near_port, in bit<16> far_port,
                     out bit<32> first, out bit<32> second) {
        hash(first, HashAlgorithm.crc32, 32w0, { near, far, hdr.ipv4.protocol, near_port, far_port }, 64w0x100000000);
        second = first;
        mix(1, first);
        mix(2, second);
        first = first & (BITS - 1);
        second = second & (BITS - 1);
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes.apply();
            if (hdr.ports.isValid()) {
                bit<32> first;
                bit<32> second;
                if (inside.apply().hit) {
                    places_of(hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ports.src_port, hdr.ports.dst_port,
                              first, second);
                    first_bits.write(first, 1);
                    second_bits.write(second, 1);
                } else {
                    places_of(hdr.ipv4.dst_addr, hdr.ipv4.src_addr, hdr.ports.dst_port, hdr.ports.src_port,
                              first, second);
                    bit<1> first_bit;
                    bit<1> second_bit;
                    first_bits.read(first_bit, first);
                    second_bits.read(second_bit, second);
                    if (first_bit == 0 || second_bit == 0) {
                        drop();
                    }
                }
            } else {
                drop();
            }
        } else {
            drop();
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control MyComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr,
              hdr.ipv4.dst_addr },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
