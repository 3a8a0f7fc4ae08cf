// The FIB, and copies to sets of ports.
#ifndef GRADBED_NDN_FORWARDING_P4
#define GRADBED_NDN_FORWARDING_P4

#include "packet.p4"

// Longest prefix match by component: an entry matches the identity of as many components as its prefix has, and has
// the higher priority the more these are.
// Nothing but a distribution's Data comes from where its publisher is, and these from nowhere else; insertions without
// a way to go are not to change anything.
control Fib(inout metadata_t meta, in port_t in_port, inout Reason reason) {
    action towards(port_t port) {
        meta.upstream = port;
    }
    table fib {
        key = {
            meta.id_1: ternary;
            meta.id_2: ternary;
            meta.id_3: ternary;
            meta.id_4: ternary;
            meta.id_5: ternary;
            meta.id_6: ternary;
            meta.id_7: ternary;
            meta.id_8: ternary;
        }
        actions = { towards; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    apply {
        meta.upstream = 0;
        fib.apply();
        if (meta.packet_type == TYPE_DATA) {
            if (meta.upstream != in_port) {
                reason = Reason.NOT_UPSTREAM;
            }
        } else if (meta.operation == Operation.INSERTION && (meta.upstream == 0 || meta.upstream == in_port)) {
            reason = Reason.NO_ROUTE;
        }
    }
}

struct port_set_digest_t {
    port_set_t ports;
}

// A set of ports is the number of its multicast group. Of sets that have none the controller is told.
control Copies(inout metadata_t meta, inout standard_metadata_t std, out bool known) {
    action has_group() {
        std.mcast_grp = meta.copy == 1 ? meta.ports : 16w0;
    }
    table port_sets {
        key = { meta.ports: ternary; }
        actions = { has_group; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }
    apply {
        known = port_sets.apply().hit;
        if (!known) {
            digest<port_set_digest_t>(1, { meta.ports });
        }
    }
}

// Other traffic than NDN: IPv4, routed.
control Ipv4Forwarding(inout headers_t hdr, inout standard_metadata_t std, inout Reason reason) {
    action forward(port_t port, mac_addr_t dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
    }
    table ipv4_routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    apply {
        bool routed = false;
        if (hdr.ipv4.isValid() && std.parser_error == error.NoError && std.checksum_error == 0 && hdr.ipv4.ttl > 1) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            routed = ipv4_routes.apply().hit;
        }
        if (!routed) {
            reason = Reason.NOT_OURS;
        }
    }
}

#endif
