// The longest queue that a packet found at each port, and the packets that leave marked (congestion.p4).
#ifndef GRADBED_QUEUE_WATCH_P4
#define GRADBED_QUEUE_WATCH_P4

#include "congestion.p4"

#ifndef PORTS
#define PORTS 512
#endif

control WatchQueue(in ipv4_t ipv4, in standard_metadata_t std) {
    // One port's packets are handled one after the other on every target, so a cell has one writer.
    register<bit<32>>(PORTS) longest_queue;
    counter(PORTS, CounterType.packets_and_bytes) marked;

    action note_queue() {
        bit<32> longest;
        bit<32> found = (bit<32>)std.enq_qdepth;
        longest_queue.read(longest, (bit<32>)std.egress_port);
        longest_queue.write((bit<32>)std.egress_port, found > longest ? found : longest);
    }

    apply {
        note_queue();
        if (ipv4.isValid() && ipv4.dscp_ecn[ECN_FIELD] == ECN_CE) {
            marked.count((bit<32>)std.egress_port);
        }
    }
}

#endif
