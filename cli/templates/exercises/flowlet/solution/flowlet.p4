// flowlet: two uplinks, and after each pause in a flow the one that has carried less.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
// A power of two.
const bit<32> FLOWS = 1024;
// A pause after which packets cannot overtake those before it any more, in microseconds.
const bit<48> PAUSE_US = 500;

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

struct metadata_t {
    bit<16> group;
    bit<8>  path;
}

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
    // Of each flow (a hash of it): when its last packet came, and the path that it takes, 0 or 1.
    register<bit<48>>(FLOWS) last_us;
    register<bit<8>>(FLOWS) path_of;
    // Of each path: the bytes that have taken it.
    register<bit<32>>(2) bytes_on;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port, bit<48> dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    // CRCs are linear: what comes of values that follow each other follows a pattern, too. This is the end of
    // MurmurHash3 (A. Appleby), which is not linear.
    action mix(inout bit<32> value) {
        value = (value ^ (value >> 16)) * 0x85EBCA6B;
        value = (value ^ (value >> 13)) * 0xC2B2AE35;
        value = value ^ (value >> 16);
    }
    action choose(bit<16> group) {
        meta.group = group;
    }
    // Destinations with two paths.
    table groups {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { choose; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    table paths {
        key = { meta.group: exact; meta.path: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }
    // All others.
    table routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else if (groups.apply().hit) {
            bit<32> flow;
            hash(flow, HashAlgorithm.crc32, 32w0,
                 { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, hdr.ports.src_port, hdr.ports.dst_port },
                 64w0x100000000);
            mix(flow);
            flow = flow & (FLOWS - 1);
            bit<48> now_us = std.ingress_global_timestamp;
            bit<48> before_us;
            bit<32> bytes_0;
            bit<32> bytes_1;
            last_us.read(before_us, flow);
            path_of.read(meta.path, flow);
            bytes_on.read(bytes_0, 0);
            bytes_on.read(bytes_1, 1);

            if (before_us == 0 || now_us - before_us > PAUSE_US) {
                if (bytes_0 <= bytes_1) {
                    meta.path = 0;
                } else {
                    meta.path = 1;
                }
                path_of.write(flow, meta.path);
            }
            last_us.write(flow, now_us);

            if (meta.path == 0) {
                bytes_on.write(0, bytes_0 + std.packet_length);
            } else {
                bytes_on.write(1, bytes_1 + std.packet_length);
            }

            paths.apply();
        } else {
            routes.apply();
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
