// The port where fewest packets of this priority wait, of up to 16 that an entry names. Ties go round: to the first of
// them behind the one taken last, so that ports at rest take turns.
#ifndef GRADBED_LEAST_LOADED_P4
#define GRADBED_LEAST_LOADED_P4

#include "../load.p4"
#include "spraying.p4"

#define MOST_CANDIDATES 16w16
#define FOR_EACH_CANDIDATE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

// A load and, in the lowest four bits, how far behind the one taken last: all differ.
#define WEIGH(i) if (port_##i != 0) { \
        waiting.read(load, (bit<32>)port_##i * CHANNELS_OF_A_PORT + (bit<32>)std.priority); \
        weight = (load << 4) | (bit<32>)((4w##i - turn) & 0xF); \
        if (weight < least) { least = weight; chosen = i; } \
    }
#define NO_PORT(i) port_t port_##i = 0;

// block: of next hops, where there are more than 16; next_hop: its number among all.
control LeastLoaded(in bit<16> next_hop_set, in bit<16> block, in standard_metadata_t std, out bit<16> next_hop) {
    FOR_EACH_CANDIDATE(NO_PORT)

    action among(port_t first, port_t second, port_t third, port_t fourth, port_t fifth, port_t sixth, port_t seventh,
            port_t eighth, port_t ninth, port_t tenth, port_t eleventh, port_t twelfth, port_t thirteenth,
            port_t fourteenth, port_t fifteenth, port_t sixteenth) {
        port_0 = first;
        port_1 = second;
        port_2 = third;
        port_3 = fourth;
        port_4 = fifth;
        port_5 = sixth;
        port_6 = seventh;
        port_7 = eighth;
        port_8 = ninth;
        port_9 = tenth;
        port_10 = eleventh;
        port_11 = twelfth;
        port_12 = thirteenth;
        port_13 = fourteenth;
        port_14 = fifteenth;
        port_15 = sixteenth;
    }
    table candidates {
        key = { next_hop_set: exact @name("next_hop_set"); block: exact @name("block"); }
        actions = { among; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    apply {
        candidates.apply();
        bit<16> taken;
        turns.read(taken, (bit<32>)next_hop_set);
        bit<4> turn = taken[3:0];
        bit<32> load;
        bit<32> weight;
        bit<32> least = 0xFFFFFFFF;
        bit<16> chosen = 0;
        FOR_EACH_CANDIDATE(WEIGH)
        turns.write((bit<32>)next_hop_set, chosen + 1);
        next_hop = block * MOST_CANDIDATES + chosen;
    }
}

#endif
