// Where a packet goes: towards its designated switch, along a multicast tree, or to its IPv4 destination.
#ifndef GRADBED_FORWARDING_P4
#define GRADBED_FORWARDING_P4

#include "parser.p4"

control Forwarding(inout headers_t hdr, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }
    action towards_designated(port_t port) {
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

    table designated_routes {
        key = { hdr.gradient.switch_number: exact; }
        actions = { towards_designated; NoAction; }
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
        if (hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            bool routed = false;
            if (hdr.gradient.isValid() && hdr.gradient.acknowledgement == 0 && hdr.gradient.switch_number != 0) {
                routed = designated_routes.apply().hit;
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

#endif
