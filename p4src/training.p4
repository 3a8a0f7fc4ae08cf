// A router for training traffic (RoCEv2 over UDP and IPv4): chooses among equally short paths, copies along multicast
// trees, and marks congestion. A packet's priority is its DSCP's class selector (RFC 2474, section 4.2.2), the first
// three bits: links keep a queue for each, and pause each on its own where they do so (docs/lossless-ethernet.md).
//
// Compile-time macros: PORTS, NEXT_HOP_SETS.
#include <core.p4>
#include <v1model.p4>

#include "include/congestion.p4"
#include "include/load.p4"
#include "include/queue_watch.p4"
#include "include/training/balance.p4"
#include "include/training/router_parser.p4"

#define CLASS_SELECTOR 7:5

// Why a packet was dropped: index of the counter `dropped`.
enum bit<32> Cause {
    MALFORMED = 0,              // no IPv4, a wrong checksum, options
    TTL = 1,
    NO_ROUTE = 2
}
#define CAUSES 3

control TrainingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(CAUSES, CounterType.packets_and_bytes) dropped;
    Balance() balance;

    action drop(Cause cause) {
        dropped.count((bit<32>)cause);
        mark_to_drop(std);
    }
    action replicate(bit<16> group) {
        std.mcast_grp = group;
    }
    table multicast_routes {
        key = { hdr.ipv4.dst_addr: exact; }
        actions = { replicate; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid()) {
            drop(Cause.MALFORMED);
        } else if (hdr.ipv4.ttl <= 1) {
            drop(Cause.TTL);
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            std.priority = hdr.ipv4.dscp_ecn[CLASS_SELECTOR];
            bool routed;
            if (hdr.ipv4.dst_addr[31:28] == 0xE) {
                routed = multicast_routes.apply().hit;
            } else {
                balance.apply(hdr, meta, std, routed);
            }
            if (!routed) {
                drop(Cause.NO_ROUTE);
            }
        }
    }
}

control TrainingEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    MarkCongestion() congestion;
    WatchQueue() queue;
    NoteDeparture() departure;

    apply {
        departure.apply((bit<32>)std.egress_port * CHANNELS_OF_A_PORT + (bit<32>)std.priority, std);
        congestion.apply(hdr.ipv4, std);
        queue.apply(hdr.ipv4, std);
    }
}

V1Switch(
    RouterParser(),
    RouterVerify(),
    TrainingIngress(),
    TrainingEgress(),
    RouterCompute(),
    RouterDeparser()
) main;
