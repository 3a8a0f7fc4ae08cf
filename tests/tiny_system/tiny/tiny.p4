// Routes IPv4, and counts the packets of flows. With headers of its own: it stands outside the tree.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<72> version_to_ttl;
    bit<8> protocol;
    bit<16> header_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> length_and_checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t { }

parser TinyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            17: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control TinyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(64, CounterType.packets_and_bytes) flow_packets;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port, bit<48> dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
    }
    action count_flow(bit<32> index) {
        flow_packets.count(index);
    }
    table ipv4_routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
    }
    table flows {
        key = { hdr.ipv4.dst_addr: exact; hdr.udp.dst_port: exact; }
        actions = { count_flow; NoAction; }
        const default_action = NoAction();
    }

    apply {
        if (hdr.udp.isValid()) {
            flows.apply();
        }
        if (hdr.ipv4.isValid()) {
            ipv4_routes.apply();
        } else {
            drop();
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TinyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(TinyParser(), NoChecksum(), TinyIngress(), NoEgress(), NoChecksum(), TinyDeparser()) main;
