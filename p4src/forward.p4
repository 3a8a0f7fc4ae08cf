// A plain IPv4 router with multicast, as legacy switches are: it knows no protocol of any system. Like the OpenFlow
// flows of controller/planning/legacy.py, which do the same, it can tell packets apart by their UDP ports.
//
// Compile-time macro: PORTS.
#include <core.p4>
#include <v1model.p4>

#include "include/ipv4.p4"

#ifndef PORTS
#define PORTS 512
#endif

error { Ipv4Options }

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t { }

parser ForwardParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
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
        transition accept;
    }
}

control ForwardIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // Everything that ports receive and send, in packets and bytes of whole frames.
    counter(PORTS, CounterType.packets_and_bytes) port_in;

    action drop() {
        mark_to_drop(std);
    }
    action forward_unchanged(port_t port) {
        std.egress_spec = port;
    }
    action replicate(bit<16> group) {
        std.mcast_grp = group;
    }
    action forward(port_t port, mac_addr_t dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
    }

    table udp_routes {
        key = { hdr.udp.dst_port: exact; hdr.udp.src_port: exact; }
        actions = { forward_unchanged; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    table multicast_routes {
        key = { hdr.ipv4.dst_addr: exact; }
        actions = { replicate; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }
    table ipv4_routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 4096;
    }

    apply {
        port_in.count((bit<32>)std.ingress_port);
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            bool routed = false;
            if (hdr.udp.isValid()) {
                routed = udp_routes.apply().hit;
            }
            if (!routed) {
                routed = multicast_routes.apply().hit;
            }
            if (!routed) {
                ipv4_routes.apply();
            }
        }
    }
}

control ForwardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(PORTS, CounterType.packets_and_bytes) port_out;

    apply {
        port_out.count((bit<32>)std.egress_port);
    }
}

control ForwardVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control ForwardCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(
    ForwardParser(),
    ForwardVerify(),
    ForwardIngress(),
    ForwardEgress(),
    ForwardCompute(),
    ForwardDeparser()
) main;
