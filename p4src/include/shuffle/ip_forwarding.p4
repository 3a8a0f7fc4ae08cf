// IPv4: multicast by groups, unicast by the longest prefix.
#ifndef GRADBED_IP_FORWARDING_P4
#define GRADBED_IP_FORWARDING_P4

#include "coded_parser.p4"
#include "coded_counters.p4"

control IpForwarding(inout headers_t hdr, inout standard_metadata_t std, inout drop_cause_t cause) {
    action no_route() {
        cause = DROP_NO_ROUTE;
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
        size = 65536;
    }
    table ipv4_routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; no_route; }
        const default_action = no_route();
        size = 4096;
    }

    apply {
        if (!multicast_routes.apply().hit) {
            ipv4_routes.apply();
        }
    }
}

#endif
