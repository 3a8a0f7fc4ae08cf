// What the packets of the shuffle are, by port, in packets and bytes of whole frames; and why packets were dropped.
#ifndef GRADBED_CODED_COUNTERS_P4
#define GRADBED_CODED_COUNTERS_P4

#include "coded.p4"

#ifndef PORTS
#define PORTS 512
#endif

typedef bit<8> drop_cause_t;
const drop_cause_t DROP_NOT = 0;
const drop_cause_t DROP_MALFORMED = 1;      // not IPv4, with options, cut short, or with a wrong header checksum
const drop_cause_t DROP_EXPIRED = 2;        // its time to live was over
const drop_cause_t DROP_NO_ROUTE = 3;       // to an IPv4 destination that nothing is known of
const drop_cause_t DROP_UNKNOWN_TREE = 4;   // for a tree that does not run through here

// scheduled: coded and uncoded samples, and loans; transmissions: those among them that are a transmission's first
// fragment, so that each is counted once on every link.
control CountArrivals(in coded_t coded, in port_t port) {
    counter(PORTS, CounterType.packets_and_bytes) scheduled_in;
    counter(PORTS, CounterType.packets_and_bytes) transmissions_in;
    counter(PORTS, CounterType.packets_and_bytes) repairs_in;
    counter(PORTS, CounterType.packets_and_bytes) requests_in;
    apply {
        if (coded.request == 1) {
            requests_in.count((bit<32>)port);
        } else if (coded.repair == 1) {
            repairs_in.count((bit<32>)port);
        } else {
            scheduled_in.count((bit<32>)port);
            if (coded.fragment == 0) {
                transmissions_in.count((bit<32>)port);
            }
        }
    }
}

control CountDepartures(in coded_t coded, in port_t port) {
    counter(PORTS, CounterType.packets_and_bytes) scheduled_out;
    counter(PORTS, CounterType.packets_and_bytes) transmissions_out;
    counter(PORTS, CounterType.packets_and_bytes) repairs_out;
    counter(PORTS, CounterType.packets_and_bytes) requests_out;
    apply {
        if (coded.request == 1) {
            requests_out.count((bit<32>)port);
        } else if (coded.repair == 1) {
            repairs_out.count((bit<32>)port);
        } else {
            scheduled_out.count((bit<32>)port);
            if (coded.fragment == 0) {
                transmissions_out.count((bit<32>)port);
            }
        }
    }
}

control CountDrops(in drop_cause_t cause) {
    counter(8, CounterType.packets_and_bytes) drops;
    apply {
        drops.count((bit<32>)cause);
    }
}

#endif
