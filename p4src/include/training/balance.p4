// Where a unicast packet goes: straight, or to one of several next hops that are equally near to its destination. How one
// of them is chosen, the destination's entry says.
#ifndef GRADBED_BALANCE_P4
#define GRADBED_BALANCE_P4

#include "../mix_hash.p4"
#include "../flowlets.p4"
#include "../load.p4"
#include "least_loaded.p4"
#include "router_parser.p4"
#include "spraying.p4"

enum bit<3> Policy {
    STRAIGHT = 0,
    ECMP = 1,                   // by a hash of the flow (RFC 2992)
    RANDOM_SPRAYING = 2,
    ROUND_ROBIN_SPRAYING = 3,
    LEAST_LOADED = 4,
    FLOWLETS = 5                // after a pause any (Vanini et al., "Let It Flow", NSDI 2017)
}

control Balance(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std, out bool routed) {
    MixHash() mix_hash;
    RoundRobin() round_robin;
    LeastLoaded() least_loaded_of;
    RecallFlowlet() recall_flowlet;
    KeepFlowlet() keep_flowlet;
    CountArrival() arrival;

    Policy policy = Policy.STRAIGHT;
    bit<16> choices = 0;
    bit<32> hash_seed = 0;
    bit<48> flowlet_us = 0;

    action forward(port_t port, mac_addr_t dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
    }
    action ecmp(bit<16> next_hop_set, bit<16> next_hops, bit<32> seed) {
        policy = Policy.ECMP;
        meta.next_hop_set = next_hop_set;
        choices = next_hops;
        hash_seed = seed;
    }
    action random_spraying(bit<16> next_hop_set, bit<16> next_hops) {
        policy = Policy.RANDOM_SPRAYING;
        meta.next_hop_set = next_hop_set;
        choices = next_hops;
    }
    action round_robin_spraying(bit<16> next_hop_set, bit<16> next_hops) {
        policy = Policy.ROUND_ROBIN_SPRAYING;
        meta.next_hop_set = next_hop_set;
        choices = next_hops;
    }
    // Of several blocks any is taken, and in it the least loaded.
    action least_loaded(bit<16> next_hop_set, bit<16> blocks) {
        policy = Policy.LEAST_LOADED;
        meta.next_hop_set = next_hop_set;
        choices = blocks;
    }
    action flowlets(bit<16> next_hop_set, bit<16> next_hops, bit<32> seed, bit<48> pause_us) {
        policy = Policy.FLOWLETS;
        meta.next_hop_set = next_hop_set;
        choices = next_hops;
        hash_seed = seed;
        flowlet_us = pause_us;
    }
    table destinations {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; ecmp; random_spraying; round_robin_spraying; least_loaded; flowlets; NoAction; }
        const default_action = NoAction();
        size = 65536;
    }
    table next_hops_of_sets {
        key = { meta.next_hop_set: exact @name("next_hop_set"); meta.next_hop: exact @name("next_hop"); }
        actions = { forward; NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    apply {
        routed = destinations.apply().hit;
        if (policy != Policy.STRAIGHT) {
            if (policy == Policy.ROUND_ROBIN_SPRAYING) {
                round_robin.apply(meta.next_hop_set, choices, meta.next_hop);
            } else if (policy == Policy.RANDOM_SPRAYING) {
                random(meta.next_hop, 16w0, choices - 1);
            } else if (policy == Policy.LEAST_LOADED) {
                bit<16> block = 0;
                if (choices > 1) {
                    random(block, 16w0, choices - 1);
                }
                least_loaded_of.apply(meta.next_hop_set, block, std, meta.next_hop);
            } else {
                // RoCE senders give each queue pair a UDP source port of its own.
                bit<32> udp_ports = 0;
                if (hdr.udp.isValid()) {
                    udp_ports = hdr.udp.src_port ++ hdr.udp.dst_port;
                }
                bit<32> flow_hash;
                hash(flow_hash, HashAlgorithm.crc32, 32w0,
                    { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, udp_ports }, 32w0xFFFFFFFF);
                mix_hash.apply(hash_seed, flow_hash);
                if (policy == Policy.ECMP) {
                    meta.next_hop = (bit<16>)(((bit<48>)flow_hash * (bit<48>)choices) >> 32);
                } else {
                    bit<8> last;
                    recall_flowlet.apply(flow_hash, flowlet_us, std, last);
                    if (last != 0 && (bit<16>)last <= choices) {
                        meta.next_hop = (bit<16>)last - 1;
                    } else {
                        random(meta.next_hop, 16w0, choices - 1);
                    }
                    keep_flowlet.apply(flow_hash, std, (bit<8>)(meta.next_hop + 1));
                }
            }
            routed = next_hops_of_sets.apply().hit;
        }
        if (routed) {
            arrival.apply((bit<32>)std.egress_spec * CHANNELS_OF_A_PORT + (bit<32>)std.priority);
        }
    }
}

#endif
