// Forwards IPv4 packets by destination, unless a rule refuses their source. Counts packets by the port at which they
// arrive, keeps the last UDP port seen there, and tells the controller who sends UDP datagrams.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<8>  version_ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> header_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}

struct metadata_t { }

struct seen_t {
    bit<32> src_addr;
    bit<9>  port;
}

parser GateParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
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
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control GateVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Gate(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) arrived;
    register<bit<16>>(16) last_udp_port;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action copy(bit<16> group) {
        std.mcast_grp = group;
    }
    table routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; copy; drop; }
        default_action = drop();
    }
    table refused {
        key = { hdr.ipv4.src_addr: ternary; }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }

    apply {
        arrived.count((bit<32>) std.ingress_port);
        if (hdr.udp.isValid()) {
            last_udp_port.write((bit<32>) std.ingress_port, hdr.udp.dst_port);
            digest<seen_t>(1, { hdr.ipv4.src_addr, std.ingress_port });
        }
        if (hdr.ipv4.isValid()) {
            routes.apply();
            refused.apply();
        } else {
            drop();
        }
    }
}

control GateEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control GateComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control GateDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(GateParser(), GateVerifyChecksum(), Gate(), GateEgress(), GateComputeChecksum(), GateDeparser()) main;
