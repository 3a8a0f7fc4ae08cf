// Parts of gradients and acknowledgements that enter and leave by each port, and why packets were dropped; in packets
// and bytes of whole frames. What a full queue drops is its link's to count.
#ifndef GRADBED_PART_COUNTERS_P4
#define GRADBED_PART_COUNTERS_P4

#ifndef PORTS
#define PORTS 512
#endif

#define PART_DROP_CAUSES 4

enum bit<32> PartDrop {
    NOT = 0,
    MALFORMED = 1,      // no IPv4, options, or a wrong header checksum
    EXPIRED = 2,        // its time to live is over
    NO_ROUTE = 3
}

control CountArrivals(in part_t part, in port_t port) {
    counter(PORTS, CounterType.packets_and_bytes) part_in;
    counter(PORTS, CounterType.packets_and_bytes) acknowledgement_in;
    apply {
        if (part.acknowledgement == 1) {
            acknowledgement_in.count((bit<32>)port);
        } else {
            part_in.count((bit<32>)port);
        }
    }
}

control CountDepartures(in part_t part, in port_t port) {
    counter(PORTS, CounterType.packets_and_bytes) part_out;
    counter(PORTS, CounterType.packets_and_bytes) acknowledgement_out;
    apply {
        if (part.acknowledgement == 1) {
            acknowledgement_out.count((bit<32>)port);
        } else {
            part_out.count((bit<32>)port);
        }
    }
}

control CountPartDrops(in PartDrop cause) {
    counter(PART_DROP_CAUSES, CounterType.packets_and_bytes) drops;
    apply {
        drops.count((bit<32>)cause);
    }
}

#endif
