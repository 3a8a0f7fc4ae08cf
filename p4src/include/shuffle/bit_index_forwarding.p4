// Forwarding by bit string (RFC 8279, section 6.5), one BIFT for each tree: an ingress table names the tree's next hops
// here, the copies are made by the traffic manager, and an egress table has the forwarding bit mask (F-BM) of each next
// hop, the receivers behind it. A copy keeps those of its receivers that are in the mask; one without any is dropped.
#ifndef GRADBED_BIT_INDEX_FORWARDING_P4
#define GRADBED_BIT_INDEX_FORWARDING_P4

#include "coded_counters.p4"

control ReplicateOnTree(in coded_t coded, inout standard_metadata_t std, inout drop_cause_t cause) {
    action replicate(bit<16> group) {
        std.mcast_grp = group;
    }
    action unknown_tree() {
        cause = DROP_UNKNOWN_TREE;
    }

    table trees {
        key = { coded.bift_id: exact @name("bift_id"); }
        actions = { replicate; unknown_tree; }
        const default_action = unknown_tree();
        size = 65536;
    }

    apply {
        trees.apply();
    }
}

control KeepReceiversBehindPort(inout coded_t coded, inout standard_metadata_t std, out bool leaves) {
    // Copies for next hops behind which there is no receiver.
    counter(PORTS, CounterType.packets_and_bytes) pruned;

    action keep(bit_string_t f_bm) {
        coded.bit_string = coded.bit_string & f_bm;
    }
    action keep_none() {
        coded.bit_string = 0;
    }

    table bift {
        key = { coded.bift_id: exact @name("bift_id"); std.egress_port: exact @name("egress_port"); }
        actions = { keep; keep_none; }
        const default_action = keep_none();
        size = 65536;
    }

    apply {
        bift.apply();
        leaves = coded.bit_string != 0;
        if (!leaves) {
            pruned.count((bit<32>)std.egress_port);
            mark_to_drop(std);
        }
    }
}

#endif
