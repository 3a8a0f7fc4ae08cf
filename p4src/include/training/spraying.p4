// Packet spraying: each packet takes the next of its set's next hops, or any (Dixit et al., "On the Impact of Packet
// Spraying in Data Center Networks", INFOCOM 2013).
#ifndef GRADBED_SPRAYING_P4
#define GRADBED_SPRAYING_P4

#ifndef NEXT_HOP_SETS
#define NEXT_HOP_SETS 4096
#endif

// Of each set: whose turn it is.
register<bit<16>>(NEXT_HOP_SETS) turns;

control RoundRobin(in bit<16> next_hop_set, in bit<16> next_hops, out bit<16> next_hop) {
    bit<16> turn = 0;

    action take_turn() {
        turns.read(turn, (bit<32>)next_hop_set);
        turn = turn < next_hops ? turn : 0;
        turns.write((bit<32>)next_hop_set, turn + 1);
    }
    apply {
        take_turn();
        next_hop = turn;
    }
}

#endif
