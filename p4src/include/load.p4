// Load is what waits in the queues. A port's queue is seen in egress only, when a packet leaves it (deq_qdepth): egress
// writes that into `waiting`, and ingress adds what it sends there since. So a burst is seen at once; what a full queue
// drops is counted until the next packet leaves; and a queue that has run dry reads 0, since its last packet said so.
#ifndef GRADBED_LOAD_P4
#define GRADBED_LOAD_P4

#include "ipv4.p4"

#ifndef PORTS
#define PORTS 512
#endif
#define CHANNELS_OF_A_PORT 8

// Packets, by port * CHANNELS_OF_A_PORT + channel. Both pipelines use it.
register<bit<32>>(PORTS * CHANNELS_OF_A_PORT) waiting;

control CountArrival(in bit<32> channel) {
    action add_one() {
        bit<32> packets;
        waiting.read(packets, channel);
        waiting.write(channel, packets + 1);
    }
    apply {
        add_one();
    }
}

control NoteDeparture(in bit<32> channel, in standard_metadata_t std) {
    action write_depth() {
        waiting.write(channel, (bit<32>)std.deq_qdepth);
    }
    apply {
        write_depth();
    }
}

#endif
