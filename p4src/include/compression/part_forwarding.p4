// Where a packet goes: along a multicast tree, or to its IPv4 destination.
#ifndef GRADBED_PART_FORWARDING_P4
#define GRADBED_PART_FORWARDING_P4

#include "part_parser.p4"
#include "part_counters.p4"

control PartForwarding(inout headers_t hdr, inout standard_metadata_t std, inout PartDrop cause) {
    action no_route() {
        cause = PartDrop.NO_ROUTE;
    }
    action replicate(bit<16> group) {
        std.mcast_grp = group;
    }
    action forward(port_t port, mac_addr_t dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
    }

    table multicast_routes {
        key = { hdr.ipv4.dst_addr: exact; }
        actions = { replicate; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }
    table ipv4_routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; no_route; }
        const default_action = no_route();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.ttl <= 1) {
            cause = PartDrop.EXPIRED;
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (!multicast_routes.apply().hit) {
                ipv4_routes.apply();
            }
        }
    }
}

#endif
