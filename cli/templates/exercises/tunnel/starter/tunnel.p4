// tunnel: leaves put packets into a tunnel, spines carry it without a look at what is inside.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<16> ETHER_TYPE_TUNNEL = 0x88b5;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

// Between Ethernet and what travels inside. protocol: what comes next, an EtherType.
header tunnel_t {
    bit<16> destination;
    bit<16> protocol;
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

struct headers_t {
    ethernet_t ethernet;
    tunnel_t   tunnel;
    ipv4_t     ipv4;
}

struct metadata_t {
    bit<8> distance;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            // TODO: a packet may be in a tunnel, and IPv4 (or something else) in that.
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // Packets that came in a tunnel, by the port at which they came.
    counter(512, CounterType.packets) tunnelled;

    action drop() {
        mark_to_drop(std);
    }
    action enter_tunnel(bit<16> destination) {
        // TODO: put the tunnel's header on: where it leads, and what is inside; Ethernet says that a tunnel follows.
    }
    table entrances {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { enter_tunnel; drop; }
        default_action = drop();
        size = 4096;
    }
    // distance: links from here to the switch at which the tunnel ends; 0: it ends here.
    action forward(bit<9> port, bit<48> dst_mac, bit<8> distance) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
        meta.distance = distance;
    }
    table tunnels {
        key = { hdr.tunnel.destination: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }

    apply {
        if (hdr.tunnel.isValid()) {
            tunnelled.count((bit<32>) std.ingress_port);
        } else if (hdr.ipv4.isValid()) {
            entrances.apply();
        }
        if (hdr.tunnel.isValid()) {
            meta.distance = 1;
            tunnels.apply();
            if (meta.distance == 0) {
                // TODO: take the header off again, and have Ethernet say what follows now.
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
    apply { }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        // TODO: the tunnel's header, in its place.
        packet.emit(hdr.ipv4);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
