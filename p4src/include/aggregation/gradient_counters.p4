// Gradient packets and acknowledgements that enter and leave by each port, in packets and bytes of whole frames.
#ifndef GRADBED_GRADIENT_COUNTERS_P4
#define GRADBED_GRADIENT_COUNTERS_P4

#ifndef PORTS
#define PORTS 512
#endif

control CountArrivals(in gradient_t gradient, in port_t port) {
    counter(PORTS, CounterType.packets_and_bytes) gradient_in;
    counter(PORTS, CounterType.packets_and_bytes) acknowledgement_in;
    apply {
        if (gradient.acknowledgement == 1) {
            acknowledgement_in.count((bit<32>)port);
        } else {
            gradient_in.count((bit<32>)port);
        }
    }
}

control CountDepartures(in gradient_t gradient, in port_t port) {
    counter(PORTS, CounterType.packets_and_bytes) gradient_out;
    counter(PORTS, CounterType.packets_and_bytes) acknowledgement_out;
    apply {
        if (gradient.acknowledgement == 1) {
            acknowledgement_out.count((bit<32>)port);
        } else {
            gradient_out.count((bit<32>)port);
        }
    }
}

#endif
